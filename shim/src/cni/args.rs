//! `CNI_ARGS`: pairs `KEY=VALUE` joined by semicolons.

use super::error::{Code, Failure};

/// What we read of them. Unknown keys are for others, and accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// `IP`, as it stands: addresses joined by commas.
    pub ip: String,
    /// `K8S_POD_NAMESPACE`.
    pub pod_namespace: String,
    /// `K8S_POD_NAME`.
    pub pod_name: String,
    /// `K8S_POD_UID`.
    pub pod_uid: String,
}

/// A pair without `=`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CNI_ARGS: invalid pair {0:?}: write KEY=VALUE;KEY=VALUE")]
pub struct InvalidPair(pub String);

impl From<InvalidPair> for Failure {
    fn from(error: InvalidPair) -> Failure {
        Failure::new(Code::Environment, error.to_string())
    }
}

impl Args {
    /// Reads the variable's text; of a key that comes twice the last counts.
    ///
    /// # Errors
    /// If a pair has no `=`.
    pub fn parse(text: &str) -> Result<Args, InvalidPair> {
        let mut args = Args::default();
        for pair in text.split(';').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| InvalidPair(pair.chars().take(64).collect()))?;
            let field = match key.trim() {
                "IP" => &mut args.ip,
                "K8S_POD_NAMESPACE" => &mut args.pod_namespace,
                "K8S_POD_NAME" => &mut args.pod_name,
                "K8S_POD_UID" => &mut args.pod_uid,
                _ => continue,
            };
            value.clone_into(field);
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, InvalidPair};

    #[test]
    fn known_keys_are_read_and_others_left_alone() {
        let text = "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_UID=u;\
                    K8S_POD_INFRA_CONTAINER_ID=c;IP=10.0.0.1/24;X=a=b";
        let args = Args::parse(text).unwrap();
        assert_eq!(args.pod_namespace, "ns");
        assert_eq!(args.pod_name, "p");
        assert_eq!(args.pod_uid, "u");
        assert_eq!(args.ip, "10.0.0.1/24");
        assert_eq!(Args::parse("").unwrap(), Args::default());
        assert_eq!(Args::parse("A=1;nonsense"), Err(InvalidPair("nonsense".into())));
    }
}
