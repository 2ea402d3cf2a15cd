//! The members of a JSON body, read by hand: amounts keep their digits, and null differs from absence.

use domain::edit::Edit;
use domain::json::{Json, JsonKind, unknown_name};
use domain::money::Usd;
use wires::client::{ErrorLocation, read_object};

use super::error::ApiError;

/// A member that published clients send and that has no function here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeutralMember {
    pub(crate) name: &'static str,
    /// The accepted values besides null, as JSON.
    pub(crate) values: &'static [&'static str],
    /// The way to get the function, or nothing.
    pub(crate) remedy: &'static str,
}

impl NeutralMember {
    /// Creates a member with accepted values besides null.
    pub(crate) const fn new(name: &'static str, values: &'static [&'static str]) -> Self {
        Self { name, values, remedy: "" }
    }

    /// Rejects the values of members that this service cannot apply.
    pub(crate) fn check_all(neutral: &[Self], members: &[(String, Json)]) -> Result<(), ApiError> {
        for (name, value) in members {
            let Some(member) = neutral.iter().find(|member| member.name == name) else { continue };
            let is = |accepted: &&str| *accepted == value.text() || parse(accepted) == parse(value.text());
            if value.kind() != JsonKind::Null && !member.values.iter().any(is) {
                let message = format!("{name} is not supported{}", member.remedy);
                return Err(ApiError::invalid(message).location(ErrorLocation::Member(name.clone())));
            }
        }
        Ok(())
    }
}

fn parse(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// The names of the members of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberNames {
    pub(crate) writable: &'static [&'static str],
    /// The members of the record that only the service sets. A change ignores them, so that a record can be sent back.
    pub(crate) read_only: &'static [&'static str],
    pub(crate) neutral: &'static [NeutralMember],
}

/// The members of a body.
#[derive(Debug)]
pub(crate) struct Members {
    members: Vec<(String, Json)>,
    writable: &'static [&'static str],
}

impl Members {
    /// Reads the members. One that is unknown, or occurs twice, is an error.
    pub(crate) fn read(text: &str, names: MemberNames) -> Result<Self, ApiError> {
        let members = read_object(text)?.members().unwrap_or_default();
        let known = || names.writable.iter().copied().chain(names.neutral.iter().map(|member| member.name));
        for (index, (name, _)) in members.iter().enumerate() {
            if !known().any(|known| known == name) && !names.read_only.contains(&name.as_str()) {
                return Err(ApiError::invalid(unknown_name("member", name, known())));
            }
            if members[..index].iter().any(|(other, _)| other == name) {
                return Err(invalid(name, "is in the body more than once"));
            }
        }
        NeutralMember::check_all(names.neutral, &members)?;
        Ok(Self { members, writable: names.writable })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.members.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Returns a member that is not null.
    pub(crate) fn present(&self, name: &str) -> Option<&Json> {
        self.get(name).filter(|value| value.kind() != JsonKind::Null)
    }

    pub(crate) fn has_writable(&self) -> bool {
        self.members.iter().any(|(name, _)| self.writable.contains(&name.as_str()))
    }

    /// Reads a member; null clears it.
    pub(crate) fn edit<T>(
        &self,
        name: &str,
        read: fn(&str, &Json) -> Result<T, ApiError>,
    ) -> Result<Edit<T>, ApiError> {
        match self.get(name) {
            None => Ok(Edit::Keep),
            Some(value) if value.kind() == JsonKind::Null => Ok(Edit::Clear),
            Some(value) => read(name, value).map(Edit::Set),
        }
    }

    /// Reads a member that cannot be null.
    pub(crate) fn value<T>(
        &self,
        name: &str,
        read: fn(&str, &Json) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        self.get(name).map(|value| read(name, value)).transpose()
    }

    /// Reads a member that must be present.
    pub(crate) fn required<T>(&self, name: &str, read: fn(&str, &Json) -> Result<T, ApiError>) -> Result<T, ApiError> {
        read(name, self.present(name).ok_or_else(|| invalid(name, "is required"))?)
    }

    /// Checks a member that the path or the query decides: in a record that is sent back it has this value, and another
    /// one would be ignored.
    pub(crate) fn fixed(&self, name: &str, value: Option<&str>) -> Result<(), ApiError> {
        match self.get(name) {
            Some(other) if other.as_string().as_deref() != value => {
                let value = value.map_or_else(|| "null".to_owned(), |value| Json::string(value).text().to_owned());
                Err(invalid(name, &format!("is {value} here and cannot be changed")))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn string(name: &str, value: &Json) -> Result<String, ApiError> {
    value.as_string().ok_or_else(|| invalid(name, "must be a string"))
}

pub(crate) fn boolean(name: &str, value: &Json) -> Result<bool, ApiError> {
    match value.text() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid(name, "must be true or false")),
    }
}

/// Reads an amount exactly: a number, never through a float.
pub(crate) fn amount(name: &str, value: &Json) -> Result<Usd, ApiError> {
    let number = (value.kind() == JsonKind::Number).then(|| value.text().parse().ok()).flatten();
    number.ok_or_else(|| {
        invalid(name, "must be an amount of USD: a number up to 9223372.036854775807 with at most 12 decimals")
    })
}

/// Reads a rate per minute.
pub(crate) fn rate(name: &str, value: &Json) -> Result<u32, ApiError> {
    let number = value.text().parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| invalid(name, "must be a whole number from 1 to 4294967295"))
}

/// Creates the error of a member of the body.
pub(crate) fn invalid(path: &str, fault: &str) -> ApiError {
    located(ApiError::invalid(""), path, &fault)
}

/// Gives an error the path of a member of the body.
pub(crate) fn located(error: ApiError, path: &str, fault: &impl ToString) -> ApiError {
    error.message(format!("{path}: {}", fault.to_string())).location(ErrorLocation::Member(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: MemberNames = MemberNames {
        writable: &["limit", "name"],
        read_only: &["id"],
        neutral: &[
            NeutralMember::new("flag", &["false"]),
            NeutralMember::new("share", &["1"]),
            NeutralMember { name: "rules", values: &["[]", r#"["a"]"#], remedy: ": use others" },
            NeutralMember::new("owner", &[]),
        ],
    };

    fn fault(text: &str) -> String {
        Members::read(text, NAMES).unwrap_err().text().to_owned()
    }

    #[test]
    fn neutral_members_are_accepted_with_their_values_only() {
        for text in [
            "{}",
            r#"{"flag":false,"share":1,"rules":[],"owner":null}"#,
            r#"{"flag":null,"share":null,"rules":[ "a" ]}"#,
        ] {
            assert!(!Members::read(text, NAMES).unwrap().has_writable(), "{text}");
        }
        assert_eq!(fault(r#"{"flag":true}"#), "flag is not supported");
        assert_eq!(fault(r#"{"share":0.5}"#), "share is not supported");
        assert_eq!(fault(r#"{"rules":["b"]}"#), "rules is not supported: use others");
        assert_eq!(fault(r#"{"owner":"x"}"#), "owner is not supported");
    }

    #[test]
    fn members_are_known_unique_and_exact() {
        assert_eq!(fault(r#"{"nmae":1}"#), r#"unknown member "nmae"; the nearest known member is "name""#);
        assert_eq!(fault(r#"{"name":1,"name":2}"#), "name: is in the body more than once");
        let read = |text: &str| Members::read(text, NAMES).unwrap();
        let limit = |text: &str| read(text).edit("limit", amount).map_err(|error| error.text().to_owned());
        assert_eq!(limit(r#"{"limit":1.000000000001}"#).unwrap(), Edit::Set("1.000000000001".parse().unwrap()));
        assert_eq!((limit("{}").unwrap(), limit(r#"{"limit":null}"#).unwrap()), (Edit::Keep, Edit::Clear));
        for hostile in ["1.0000000000001", "9223372036854775807", "1e400", "\"1\"", "[]", "true"] {
            assert!(limit(&format!(r#"{{"limit":{hostile}}}"#)).unwrap_err().starts_with("limit: must be an amount"));
        }
        assert!(read(r#"{"id":"x"}"#).get("id").is_some() && !read(r#"{"id":"x"}"#).has_writable());
        for (text, value, expected) in [
            ("{}", Some("x"), Ok(())),
            (r#"{"id":"x"}"#, Some("x"), Ok(())),
            (r#"{"id":null}"#, None, Ok(())),
            (r#"{"id":"y"}"#, Some("x"), Err("id: is \"x\" here and cannot be changed")),
            (r#"{"id":"y"}"#, None, Err("id: is null here and cannot be changed")),
            (r#"{"id":1}"#, Some("1"), Err("id: is \"1\" here and cannot be changed")),
        ] {
            let found = read(text).fixed("id", value).map_err(|error| error.text().to_owned());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
        assert_eq!(read("{}").required("name", string).unwrap_err().text(), "name: is required");
    }
}
