//! From a URL to a store. Credentials come from the environment and from the vendors' own files, never from the URL.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use super::aws_files;
use super::error::StoreError;
use super::http::Connector;

const SCHEMES: [&str; 8] = ["file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// Whether a text names an archive: `s3://…`, `file:///…`, `gs://…`, `az://…`.
pub fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()))
}

/// What a folder that is not there means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFolder {
    /// It is made.
    Make,
    /// There is no archive.
    Refuse,
}

/// A place in a store.
pub struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub prefix: Path,
}

/// The parts of a URL: scheme, bucket, what is behind it.
fn split(url: &str) -> Result<(String, &str, &str), StoreError> {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // Azure's container@account has no secret in it.
    let may_have_account = scheme.starts_with("abfs") && !bucket.contains(':');
    if bucket.contains('@') && !may_have_account || rest.contains('?') {
        return Err(StoreError::Refused(
            "an archive's URL has no credentials and no parameters: they come from the environment".to_owned(),
        ));
    }
    if scheme == "file" && !bucket.is_empty() {
        return Err(StoreError::Refused("a folder's URL has three slashes: file:///srv/archive".to_owned()));
    }
    if scheme != "file" && bucket.is_empty() {
        return Err(StoreError::Refused(format!("the URL names no bucket: {scheme}://BUCKET/PREFIX")));
    }
    Ok((scheme, bucket, prefix.trim_matches('/')))
}

pub fn open(url: &str, missing: MissingFolder) -> Result<Place, StoreError> {
    let (scheme, bucket, prefix) = split(url)?;
    let refused = |error: object_store::Error| StoreError::Refused(error.to_string());
    let path = || Path::parse(prefix).map_err(|error| StoreError::Refused(error.to_string()));
    match scheme.as_str() {
        "file" => {
            let dir = PathBuf::from("/").join(prefix);
            match missing {
                MissingFolder::Make => make(&dir)?,
                MissingFolder::Refuse if !dir.is_dir() => return Err(StoreError::NotFound),
                MissingFolder::Refuse => {}
            }
            let store = LocalFileSystem::new_with_prefix(&dir).map_err(refused)?.with_fsync(true);
            Ok(Place { store: Arc::new(store), prefix: Path::default() })
        }
        "s3" | "s3a" => Ok(Place { store: s3(bucket)?, prefix: path()? }),
        _ => Ok(Place { store: cloud(&scheme, bucket)?, prefix: path()? }),
    }
}

/// As the mirror's: readable by nobody else.
fn make(dir: &FilePath) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| StoreError::Failed(format!("{}: {error}", dir.display())))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        ..BackoffConfig::default()
    };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(20) }
}

fn s3(bucket: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let profile = aws_files::profile(variable);
    let has_own = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ]
    .iter()
    .any(|name| variable(name).is_some());
    if !has_own {
        for (key, value) in [
            (AmazonS3ConfigKey::AccessKeyId, profile.key_id),
            (AmazonS3ConfigKey::SecretAccessKey, profile.secret),
            (AmazonS3ConfigKey::Token, profile.token),
        ] {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
    }
    if let Some(region) = profile.region.filter(|_| variable("AWS_REGION").or(variable("AWS_DEFAULT_REGION")).is_none())
    {
        builder = builder.with_region(region);
    }
    let endpoint = variable("AWS_ENDPOINT_URL_S3").or(variable("AWS_ENDPOINT_URL")).or(variable("AWS_ENDPOINT"));
    if let Some(endpoint) = endpoint.or(profile.endpoint) {
        builder = builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint);
    }
    let store = builder.with_http_connector(Connector).with_retry(retries()).build();
    Ok(Arc::new(store.map_err(|error| StoreError::Refused(error.to_string()))?))
}

#[cfg(feature = "clouds")]
fn cloud(scheme: &str, bucket: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    use object_store::azure::MicrosoftAzureBuilder;
    use object_store::gcp::GoogleCloudStorageBuilder;
    let refused = |error: object_store::Error| StoreError::Refused(error.to_string());
    if scheme == "gs" {
        let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
        return Ok(Arc::new(builder.with_http_connector(Connector).with_retry(retries()).build().map_err(refused)?));
    }
    let builder = match bucket.split_once('@') {
        Some(_) => MicrosoftAzureBuilder::from_env().with_url(format!("{scheme}://{bucket}/")),
        None => MicrosoftAzureBuilder::from_env().with_container_name(bucket),
    };
    Ok(Arc::new(builder.with_http_connector(Connector).with_retry(retries()).build().map_err(refused)?))
}

#[cfg(not(feature = "clouds"))]
fn cloud(scheme: &str, _: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Err(StoreError::Refused(format!(
        "this heddle was built without {scheme}:// (the feature `clouds`, which the packages have): use s3:// or file:///"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, parts) in [
            ("s3://bucket/a/b/", Some(("s3", "bucket", "a/b"))),
            ("S3://bucket", Some(("s3", "bucket", ""))),
            ("file:///srv/archive", Some(("file", "", "srv/archive"))),
            ("abfss://box@account.dfs.core.windows.net/a", Some(("abfss", "box@account.dfs.core.windows.net", "a"))),
            ("s3://key:secret@bucket/a", None),
            ("abfs://key:secret@bucket/a", None),
            ("s3://bucket/a?x=1", None),
            ("file://srv/archive", None),
            ("s3:///a", None),
        ] {
            let found = split(url).ok();
            let parts = parts.map(|(scheme, bucket, prefix)| (scheme.to_owned(), bucket, prefix));
            assert_eq!(found, parts, "{url}");
        }
        assert!(is_url("gs://a") && is_url("AZ://a") && !is_url("mysql://a") && !is_url("/srv/a"));
    }

    #[test]
    fn no_secret_is_repeated() {
        let message = split("s3://key:secret@bucket/a").unwrap_err().to_string();
        assert!(!message.contains("secret"), "{message}");
    }
}
