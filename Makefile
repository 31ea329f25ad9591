# Called by `sam build` for the layer in template.yaml: puts the extension where Lambda looks for it.
# For x86_64: `ARCHITECTURE=x86_64 sam build`, and the template's parameter of the same name.
ARCHITECTURE ?= arm64
TARGET_FLAG_arm64 := --arm64
TARGET_FLAG_x86_64 := --x86-64

.PHONY: build-LeaseholdLayer
build-LeaseholdLayer:
	cargo lambda build --release --extension --package leasehold-extension $(TARGET_FLAG_$(ARCHITECTURE)) --lambda-dir target/lambda-layer
	mkdir -p "$(ARTIFACTS_DIR)/extensions"
	cp target/lambda-layer/extensions/leasehold "$(ARTIFACTS_DIR)/extensions/leasehold"
