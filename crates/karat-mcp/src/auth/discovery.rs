//! Finding the authorisation server of an MCP server: protected resource metadata (RFC 9728), then the
//! metadata of the authorisation server (RFC 8414, OpenID Connect Discovery), in the order of the
//! specification.

use reqwest::Url;
use serde_json::Value;

use super::challenge::Challenge;
use super::failure::AuthError;
use super::fetch::Fetcher;
use crate::error::quoted;

/// Entries of a list in metadata that are read.
const MAX_ENTRIES: usize = 200;

/// The protected resource, as its metadata describes it.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    /// The value of the `resource` parameter.
    pub(super) identifier: String,
    /// The authorisation servers, by their issuers.
    pub(super) issuers: Vec<String>,
    pub(super) scopes: Vec<String>,
    /// True if there is no metadata, as before revision 2025-06-18.
    legacy: bool,
}

/// An authorisation server, as its metadata describes it.
#[derive(Clone, Debug)]
pub(super) struct Issuer {
    pub(super) issuer: String,
    pub(super) token_endpoint: Url,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) device_endpoint: Option<Url>,
    pub(super) registration_endpoint: Option<Url>,
    /// Ways to authenticate at the token endpoint; `None` if it does not say.
    pub(super) methods: Option<Vec<String>>,
    pub(super) has_s256: bool,
    pub(super) has_metadata_documents: bool,
    /// True if every answer to an authorization request names the issuer (RFC 9207).
    pub(super) names_issuer: bool,
    pub(super) scopes: Vec<String>,
}

/// Finds the resource metadata of a server.
pub(super) async fn resource(
    fetcher: &Fetcher,
    server: &Url,
    challenge: &Challenge,
) -> Result<Resource, AuthError> {
    if let Some(named) = &challenge.resource_metadata {
        let url = Url::parse(named).ok().filter(|url| url.origin() == server.origin()).ok_or_else(
            || {
                AuthError::new(format!(
                    "the server names resource metadata at {:?}, which is not on the server itself",
                    quoted(named)
                ))
            },
        )?;
        let document = fetcher.document(&url, "resource metadata").await?;
        let document =
            document.ok_or_else(|| AuthError::new(format!("no resource metadata at {url}")))?;
        return read_resource(&document, server);
    }
    let mut places = vec![well_known(server, "oauth-protected-resource")];
    let root = server.join("/.well-known/oauth-protected-resource").ok();
    places.extend(root.filter(|root| *root != places[0]));
    for place in &places {
        if let Some(document) = fetcher.document(place, "resource metadata").await? {
            return read_resource(&document, server);
        }
    }
    // Before revision 2025-06-18 the server itself was its authorisation server.
    Ok(Resource {
        identifier: canonical(server),
        issuers: vec![server.origin().ascii_serialization()],
        scopes: Vec::new(),
        legacy: true,
    })
}

fn read_resource(document: &Value, server: &Url) -> Result<Resource, AuthError> {
    let identifier = document.get("resource").and_then(Value::as_str).unwrap_or_default();
    let matches = Url::parse(identifier).is_ok_and(|resource| covers(&resource, server));
    if !matches {
        return Err(AuthError::new(format!(
            "the resource metadata is for {:?}, not for {}",
            quoted(identifier),
            canonical(server)
        )));
    }
    let issuers = strings(document, "authorization_servers").unwrap_or_default();
    if issuers.is_empty() {
        return Err(AuthError::new("the resource metadata names no authorisation server"));
    }
    Ok(Resource {
        identifier: identifier.to_owned(),
        issuers,
        scopes: scopes(document),
        legacy: false,
    })
}

/// The metadata of an authorisation server of the resource. `only` is the accepted issuer.
pub(super) async fn issuer(
    fetcher: &Fetcher,
    resource: &Resource,
    only: Option<&str>,
) -> Result<Issuer, AuthError> {
    let named = match only {
        Some(only) => resource.issuers.iter().find(|issuer| *issuer == only).ok_or_else(|| {
            AuthError::new(format!(
                "the server requires tokens from {}, not from the issuer {}",
                quoted(&resource.issuers.join(", ")),
                quoted(only)
            ))
        })?,
        None => {
            resource.issuers.first().ok_or_else(|| AuthError::new("no authorisation server"))?
        }
    };
    let url = fetcher.address(named, "authorisation server")?;
    for place in places_of(&url, resource.legacy) {
        let Some(document) = fetcher.document(&place, "authorisation server metadata").await?
        else {
            continue;
        };
        return read_issuer(fetcher, &document, named, resource.legacy);
    }
    Err(AuthError::new(match resource.legacy {
        true => "the server requires a login but does not say where: it has no resource metadata and is not \
                 an authorisation server"
            .to_owned(),
        false => format!("the authorisation server {} has no metadata", quoted(named)),
    }))
}

/// The places of metadata, in the order of the specification.
fn places_of(issuer: &Url, legacy: bool) -> Vec<Url> {
    let mut places = vec![well_known(issuer, "oauth-authorization-server")];
    if legacy {
        return places;
    }
    places.push(well_known(issuer, "openid-configuration"));
    let path = issuer.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut appended = issuer.clone();
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(appended);
    }
    places
}

fn read_issuer(
    fetcher: &Fetcher,
    document: &Value,
    named: &str,
    legacy: bool,
) -> Result<Issuer, AuthError> {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let issuer = text("issuer").unwrap_or_default();
    let same = issuer == named || legacy && issuer.trim_end_matches('/') == named;
    if !same {
        return Err(AuthError::new(format!(
            "the metadata of the authorisation server {} names another issuer: {:?}",
            quoted(named),
            quoted(issuer)
        )));
    }
    let endpoint = |key: &str, what: &str| match text(key) {
        Some(url) => fetcher.address(url, what).map(Some),
        None => Ok(None),
    };
    let token_endpoint = endpoint("token_endpoint", "token endpoint")?.ok_or_else(|| {
        AuthError::new(format!("the authorisation server {} has no token endpoint", quoted(named)))
    })?;
    let is_true = |key: &str| document.get(key).and_then(Value::as_bool) == Some(true);
    let challenges = strings(document, "code_challenge_methods_supported").unwrap_or_default();
    Ok(Issuer {
        issuer: issuer.to_owned(),
        token_endpoint,
        authorization_endpoint: endpoint("authorization_endpoint", "authorization endpoint")?,
        device_endpoint: endpoint("device_authorization_endpoint", "device endpoint")?,
        registration_endpoint: endpoint("registration_endpoint", "registration endpoint")?,
        methods: strings(document, "token_endpoint_auth_methods_supported"),
        has_s256: challenges.iter().any(|method| method == "S256"),
        has_metadata_documents: is_true("client_id_metadata_document_supported"),
        names_issuer: is_true("authorization_response_iss_parameter_supported"),
        scopes: scopes(document),
    })
}

fn strings(document: &Value, key: &str) -> Option<Vec<String>> {
    let list = document.get(key)?.as_array()?;
    Some(list.iter().take(MAX_ENTRIES).filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The supported scopes, without entries that are not one word.
fn scopes(document: &Value) -> Vec<String> {
    let mut scopes = strings(document, "scopes_supported").unwrap_or_default();
    scopes.retain(|scope| !scope.is_empty() && scope.chars().all(|c| c.is_ascii_graphic()));
    scopes
}

/// The well-known address with the path of the URL behind it.
fn well_known(url: &Url, suffix: &str) -> Url {
    let mut place = url.clone();
    let path = url.path().trim_end_matches('/');
    place.set_path(&format!("/.well-known/{suffix}{path}"));
    place.set_query(None);
    place.set_fragment(None);
    place
}

/// The identifier of a server whose metadata does not give one.
fn canonical(server: &Url) -> String {
    let mut plain = server.clone();
    plain.set_query(None);
    plain.set_fragment(None);
    let _ = plain.set_username("");
    let _ = plain.set_password(None);
    let text = plain.to_string();
    if plain.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// True if a resource identifier is that of the server, or of a path above it on the same origin.
fn covers(resource: &Url, server: &Url) -> bool {
    let above = resource.path().trim_end_matches('/');
    let below = server.path().trim_end_matches('/');
    let is_above =
        below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && resource.fragment().is_none() && is_above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        let found = |text: &str| -> Vec<String> {
            places_of(&url(text), false).iter().map(Url::to_string).collect()
        };
        assert_eq!(
            found("https://a.example/tenant1"),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            found("https://a.example/"),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
        let place = well_known(&url("https://h/public/mcp?x=1"), "oauth-protected-resource");
        assert_eq!(place.as_str(), "https://h/.well-known/oauth-protected-resource/public/mcp");
    }

    #[test]
    fn a_resource_covers_its_own_path_and_those_below() {
        let server = url("https://h:1/a/mcp");
        for resource in ["https://h:1/a/mcp", "https://h:1/a/mcp/", "https://h:1/a", "https://h:1"]
        {
            assert!(covers(&url(resource), &server), "{resource}");
        }
        for resource in [
            "https://h/a/mcp",
            "http://h:1/a/mcp",
            "https://h:1/a/m",
            "https://h:1/b",
            "https://h:1/a/mcp/x",
        ] {
            assert!(!covers(&url(resource), &server), "{resource}");
        }
        assert_eq!(canonical(&url("https://me:pw@h/?key=1#x")), "https://h");
        assert_eq!(canonical(&url("https://h/mcp?key=1")), "https://h/mcp");
    }
}
