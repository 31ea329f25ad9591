//! What a person is told who starts the extension by hand.

/// Where to write an answer, and with which exit code to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was asked for, on standard output; empty where nothing was.
    pub output: String,
    /// What is wrong, on standard error; empty where nothing is.
    pub complaint: String,
    /// The process's exit code.
    pub code: u8,
}

const HELP: &str = "\
This is the Lambda extension of leasehold. It keeps DynamoDB leases for the handlers of its environment: renews them
while a handler works, and frees them when it is done or dies. Lambda starts it; it takes no arguments.

To deploy it, put it into a layer as extensions/leasehold and add the layer to the function:

    mkdir -p layer/extensions
    cp leasehold layer/extensions/
    (cd layer && zip -r ../leasehold-layer.zip extensions)
    aws lambda publish-layer-version --layer-name leasehold --zip-file fileb://leasehold-layer.zip

In a container image, copy it to /opt/extensions/leasehold. It must be executable and built for the function's
architecture.

Environment:
    LEASEHOLD_SOCKET       where handlers reach it [default: /tmp/leasehold/keeper.sock]
    LEASEHOLD_LOG          error, warn, info, debug, trace or off [default: AWS_LAMBDA_LOG_LEVEL, or info]
    LEASEHOLD_METRICS      on, full or off: lines that CloudWatch makes metrics of [default: on]
    AWS_LAMBDA_LOG_FORMAT  JSON for lines in JSON; set by Lambda's log controls
    AWS_ENDPOINT_URL_DYNAMODB, AWS_REGION and the like, as for every AWS SDK
";

/// Answers somebody who called it with these arguments (without the program's name) and is not Lambda.
#[must_use]
pub fn answer(arguments: impl IntoIterator<Item = String>) -> Answer {
    let version = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    let output = |output| Answer { output, complaint: String::new(), code: 0 };
    for argument in arguments {
        match argument.as_str() {
            "-h" | "--help" => return output(format!("{version}\n\n{HELP}")),
            "-V" | "--version" => return output(format!("{version}\n")),
            _ => {}
        }
    }
    let complaint = "\
leasehold: this is a Lambda extension, and AWS_LAMBDA_RUNTIME_API is not set, so Lambda has not started it.
Put it into a layer as extensions/leasehold; `leasehold --help` says how.
";
    Answer { output: String::new(), complaint: complaint.to_owned(), code: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: &[&str]) -> Answer {
        answer(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn who_asks_is_told_and_who_does_not_is_told_that_nothing_runs() {
        let help = asked(&["--help"]);
        assert!(help.code == 0 && help.output.contains("extensions/leasehold") && help.complaint.is_empty());
        assert_eq!(asked(&["-V"]).output, format!("leasehold {}\n", env!("CARGO_PKG_VERSION")));
        for arguments in [&[][..], &["serve"], &["--verbose"]] {
            let complaint = asked(arguments);
            assert!(complaint.code == 2 && complaint.output.is_empty());
            assert!(complaint.complaint.contains("AWS_LAMBDA_RUNTIME_API"));
        }
    }
}
