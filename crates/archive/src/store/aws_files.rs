//! `~/.aws/credentials` and `~/.aws/config`, as other tools read them: keys and region of one profile. What they say is never shown.

use std::collections::HashMap;
use std::path::PathBuf;

/// Keys and region of the profile that the environment names, or of `default`.
#[derive(Default)]
pub struct Profile {
    pub key_id: Option<String>,
    pub secret: Option<String>,
    pub token: Option<String>,
    pub region: Option<String>,
    pub endpoint: Option<String>,
}

/// Reads both files; one that is not there says nothing.
pub fn profile(variable: impl Fn(&str) -> Option<String>) -> Profile {
    let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let home = variable("HOME").map(PathBuf::from).unwrap_or_default();
    let text = |variable_name: &str, file: &str| {
        let path = variable(variable_name).map_or_else(|| home.join(".aws").join(file), PathBuf::from);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let mut found = section(&text("AWS_CONFIG_FILE", "config"), &[&name, &format!("profile {name}")]);
    found.extend(section(&text("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &[&name]));
    let mut take = |key: &str| found.remove(key);
    Profile {
        key_id: take("aws_access_key_id"),
        secret: take("aws_secret_access_key"),
        token: take("aws_session_token"),
        region: take("region"),
        endpoint: take("endpoint_url"),
    }
}

fn section(text: &str, names: &[&str]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut is_in = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_in = names.contains(&name.trim());
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_in && !line.starts_with(['#', ';'])) {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_of_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let credentials = "[default]\naws_access_key_id = A\n[ci]\naws_access_key_id=B\n# aws_session_token = no\naws_secret_access_key = s=x\n";
        std::fs::write(dir.path().join("c"), credentials).unwrap();
        std::fs::write(dir.path().join("f"), "[profile ci]\nregion = eu-west-1\nendpoint_url = http://x\n").unwrap();
        let read = |name: Option<&str>| {
            profile(|variable| match variable {
                "AWS_SHARED_CREDENTIALS_FILE" => Some(dir.path().join("c").display().to_string()),
                "AWS_CONFIG_FILE" => Some(dir.path().join("f").display().to_string()),
                "AWS_PROFILE" => name.map(str::to_owned),
                _ => None,
            })
        };
        let ci = read(Some("ci"));
        assert_eq!((ci.key_id.as_deref(), ci.secret.as_deref(), ci.token), (Some("B"), Some("s=x"), None));
        assert_eq!((ci.region.as_deref(), ci.endpoint.as_deref()), (Some("eu-west-1"), Some("http://x")));
        assert_eq!((read(None).key_id.as_deref(), read(None).region), (Some("A"), None));
    }
}
