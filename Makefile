# Called by `sam build` for the layers in template.yaml and layer-and-table.yaml: puts the extension where Lambda looks
# for it. The layer of template.yaml is for arm64, or for what ARCHITECTURE says, which is to be the same as the template's
# parameter: `ARCHITECTURE=x86_64 sam build --parameter-overrides Architecture=x86_64`.
ARCHITECTURE ?= arm64
TARGET_FLAG_arm64 := --arm64
TARGET_FLAG_x86_64 := --x86-64

.PHONY: build-LeaseholdLayer build-LeaseholdLayerArm64 build-LeaseholdLayerX8664
build-LeaseholdLayer:
	$(call build_layer,$(ARCHITECTURE))

build-LeaseholdLayerArm64:
	$(call build_layer,arm64)

build-LeaseholdLayerX8664:
	$(call build_layer,x86_64)

define build_layer
	$(if $(TARGET_FLAG_$(1)),,$(error ARCHITECTURE is arm64 or x86_64, not "$(1)"))
	cargo lambda build --release --locked --extension --package leasehold-extension $(TARGET_FLAG_$(1)) --lambda-dir target/lambda-layer/$(1)
	mkdir -p "$(ARTIFACTS_DIR)/extensions"
	cp target/lambda-layer/$(1)/extensions/leasehold "$(ARTIFACTS_DIR)/extensions/leasehold"
endef
