//! `[blobs]` with a bucket.

use adapters_s3::S3Credentials;

use super::*;

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIA-id"), ("AWS_SECRET_ACCESS_KEY", "s3cret")];
const URL: &str = "[blobs]\nurl = \"s3://data.acme/a/b/\"\n";

fn bucket(variables: &[(&str, &str)], text: &str) -> BucketConfig {
    match with(variables, text).unwrap().blobs {
        BlobsConfig::Bucket(bucket) => *bucket,
        BlobsConfig::Folder(folder) => panic!("{folder:?}"),
    }
}

fn problem(variables: &[(&str, &str)], text: &str) -> String {
    let problem = with(variables, text).map(drop).unwrap_err().to_string();
    assert!(!problem.contains("s3cret"), "{problem}");
    problem
}

#[test]
fn bucket_of_aws_needs_a_region_only() {
    let config =
        bucket(&[&KEYS[..], &[("AWS_REGION", "eu-central-1")]].concat(), "[blobs]\nurl = \"S3://acme-data\"\n");
    assert_eq!((config.bucket.as_str(), config.prefix.as_str(), config.path_style), ("acme-data", "", false));
    assert_eq!(config.endpoint, "https://s3.eu-central-1.amazonaws.com");
    assert_eq!(config.name(), "s3://acme-data");
    let china = bucket(&KEYS, &format!("{URL}region = \"cn-north-1\"\n"));
    assert_eq!(china.endpoint, "https://s3.cn-north-1.amazonaws.com.cn");
    assert_eq!((china.bucket.as_str(), china.prefix.as_str(), china.path_style), ("data.acme", "a/b", true));
    assert!(problem(&KEYS, URL).contains("blobs.region or AWS_REGION must name the region"));
    assert!(problem(&KEYS, &format!("{URL}region = \"eu central\"\n")).contains("name of a region"));
}

#[test]
fn compatible_service_is_addressed_by_path() {
    let text = format!("{URL}endpoint = \"https://minio.internal:9000/\"\nca_file = \"ca.pem\"\n");
    let config = bucket(&KEYS, &text);
    assert_eq!((config.endpoint.as_str(), config.region.as_str()), ("https://minio.internal:9000", "us-east-1"));
    assert!(config.path_style && config.ca_file.as_deref() == Some(Path::new("ca.pem")));
    let settings = config.settings().unwrap();
    let timeouts = (settings.connect_timeout, settings.request_timeout);
    assert_eq!(timeouts, (Duration::from_secs(2), Duration::from_secs(15)));
    assert!(!bucket(&KEYS, &format!("{text}path_style = false\n")).path_style);
    for endpoint in ["minio:9000", "https://h/data", "https://user@h", "https://h?x", "s3://h"] {
        let text = format!("{URL}endpoint = \"{endpoint}\"\n");
        assert!(problem(&KEYS, &text).contains("blobs.endpoint must be an http:// or https:// URL"), "{endpoint}");
    }
}

#[test]
fn url_of_bucket_is_checked() {
    for url in ["s3://", "s3://ab", "s3://A-B", "s3://-ab", "s3://a_b", "s3://abc//x", "s3://abc/../x", "s3://abc/x?y"]
    {
        let text = format!("[blobs]\nurl = \"{url}\"\nregion = \"r\"\n");
        assert!(problem(&KEYS, &text).contains("blobs.url must have the form s3://bucket/prefix"), "{url}");
    }
}

#[test]
fn keys_of_the_other_store_are_rejected() {
    let folder = problem(&[], "[blobs]\nregion = \"eu-central-1\"\n");
    assert!(folder.contains("blobs.region has no effect with a folder"), "{folder}");
    let quiet = problem(&KEYS, &format!("{URL}region = \"r\"\nquiet_period_ms = 100\n"));
    assert!(quiet.contains("blobs.quiet_period_ms has no effect with s3://"), "{quiet}");
}

/// Returns the credentials of the settings.
fn credentials(variables: &[(&str, &str)], text: &str) -> Result<S3Credentials, String> {
    let config = bucket(variables, &format!("{URL}region = \"eu-west-1\"\n{text}"));
    assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
    config.settings().map(|settings| settings.credentials).map_err(|error| format!("{error:#}"))
}

fn access_key(id: &str, secret: &str, token: Option<&str>) -> S3Credentials {
    use domain::secret::SecretString;
    let session_token = token.map(SecretString::new);
    S3Credentials::AccessKey { id: SecretString::new(id), secret: SecretString::new(secret), session_token }
}

#[test]
fn access_key_comes_from_variables_or_files() {
    assert_eq!(credentials(&KEYS, "").unwrap(), access_key("AKIA-id", "s3cret", None));
    let temporary = [&KEYS[..], &[("AWS_SESSION_TOKEN", "token")]].concat();
    assert_eq!(credentials(&temporary, "").unwrap(), access_key("AKIA-id", "s3cret", Some("token")));
    let named = "access_key_id = \"env:ID\"\nsecret_access_key = \"env:SECRET\"\n";
    let variables = [&temporary[..], &[("ID", "other"), ("SECRET", "s3cret-2")]].concat();
    assert_eq!(credentials(&variables, named).unwrap(), access_key("other", "s3cret-2", None), "another key's token");
    let unset = credentials(&KEYS, named).unwrap_err();
    assert!(unset.contains("blobs.access_key_id names an environment variable that is not set"), "{unset}");

    let folder = tempfile::tempdir().unwrap();
    let (id, secret) = (folder.path().join("id"), folder.path().join("secret"));
    let files =
        format!("access_key_id = \"file:{}\"\nsecret_access_key = \"file:{}\"\n", id.display(), secret.display());
    assert!(credentials(&[], &files).unwrap_err().contains("blobs.access_key_id names a file that cannot be read"));
    std::fs::write(&id, "from-file\n").unwrap();
    std::fs::write(&secret, "").unwrap();
    assert!(
        credentials(&[], &files).unwrap_err().contains("blobs.secret_access_key names a file that holds no secret")
    );
    std::fs::write(&secret, " s3cret-3\n").unwrap();
    assert_eq!(credentials(&[], &files).unwrap(), access_key("from-file", "s3cret-3", None));
}

#[test]
fn half_an_access_key_is_rejected() {
    let region = format!("{URL}region = \"r\"\n");
    assert!(problem(&KEYS[..1], &region).contains("an access key has an id and a secret"));
    assert!(problem(&KEYS[1..], &region).contains("blobs.access_key_id"));
    let token = format!("{region}session_token = \"env:T\"\n");
    assert!(problem(&[], &token).contains("blobs.session_token has no effect without an access key"));
    let secret = format!("{region}secret_access_key = \"s3cret/=\"\n");
    assert!(problem(&KEYS, &secret).contains("must be \"env:NAME\", the name of an environment variable"));
}

#[test]
fn temporary_credentials_are_those_that_the_platform_announces() {
    let token = ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token");
    let role = ("AWS_ROLE_ARN", "arn:aws:iam::1:role/tollgate");
    let identity = |endpoint: &str, session_name: &str| S3Credentials::WebIdentity {
        token_file: "/var/run/token".into(),
        role_arn: "arn:aws:iam::1:role/tollgate".to_owned(),
        session_name: session_name.to_owned(),
        endpoint: endpoint.to_owned(),
    };
    assert_eq!(credentials(&[token, role], "").unwrap(), identity("https://sts.eu-west-1.amazonaws.com", "tollgate"));
    let elsewhere = [token, role, ("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1"), ("AWS_ROLE_SESSION_NAME", "n")];
    assert_eq!(credentials(&elsewhere, "").unwrap(), identity("http://127.0.0.1:1", "n"));
    let unsafe_one = [token, role, ("AWS_ENDPOINT_URL_STS", "http://sts.internal")];
    assert!(problem(&unsafe_one, &format!("{URL}region = \"r\"\n")).contains("AWS_ENDPOINT_URL_STS"));
    let container = credentials(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")], "").unwrap();
    assert_eq!(container, S3Credentials::Container { relative_uri: "/v2/x".to_owned() });
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/pod"),
    ];
    assert!(matches!(credentials(&pod, "").unwrap(), S3Credentials::Pod { .. }));
    let instance = credentials(&KEYS, "credentials = \"instance\"\n").unwrap();
    assert_eq!(instance, S3Credentials::Instance { endpoint: None });
    let both = format!("{URL}region = \"r\"\ncredentials = \"instance\"\naccess_key_id = \"env:A\"\n");
    assert!(problem(&KEYS, &both).contains("has no effect with credentials = \"instance\""));
    let none = credentials(&[], "").unwrap_err();
    assert!(none.contains("AWS_ACCESS_KEY_ID") && none.contains("AWS_WEB_IDENTITY_TOKEN_FILE"), "{none}");
}
