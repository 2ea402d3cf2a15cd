//! Hints: the kind of a value, as the name of its member suggests it.

/// The kind of a value according to its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::guardrail::filter) enum Hint {
    /// No relevant kind.
    #[default]
    None,
    /// A secret.
    Secret,
    /// A social security number.
    Ssn,
    /// A telephone number.
    Phone,
    /// The number of an order, a product or another thing.
    Identifier,
}

/// Endings of names of secrets, without case and punctuation.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "clientsecret",
    "appsecret",
    "sharedsecret",
    "webhooksecret",
    "secretaccesskey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "sessiontoken",
    "apitoken",
];
const SSN: &[&str] = &["ssn", "socialsecurity", "socialsecuritynumber"];
const PHONE: &[&str] =
    &["phone", "phonenumber", "telephone", "tel", "mobile", "mobilenumber", "cell", "cellphone", "fax", "msisdn"];
/// Endings of names of identifiers that consist of digits.
const IDENTIFIERS: &[&str] = &[
    "articlenumber",
    "articleno",
    "barcode",
    "caseid",
    "casenumber",
    "customernumber",
    "ean",
    "gtin",
    "imei",
    "invoiceid",
    "invoiceno",
    "invoicenumber",
    "itemid",
    "itemnumber",
    "orderid",
    "orderno",
    "ordernumber",
    "partnumber",
    "paymentid",
    "productid",
    "referencenumber",
    "serialnumber",
    "shipmentid",
    "sku",
    "ticketid",
    "ticketnumber",
    "trackingid",
    "trackingnumber",
    "transactionid",
    "upc",
];
/// Longer names are sentences and give no hint.
const MAX_BYTES: usize = 64;

impl Hint {
    /// Returns the hint of a name in its normalised view.
    pub(in crate::guardrail::filter) fn from_name(name: &str) -> Self {
        if name.len() > MAX_BYTES {
            return Self::None;
        }
        let mut buffer = [0; MAX_BYTES];
        let mut length = 0;
        for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
            buffer[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        let plain = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        if SECRETS.iter().any(|end| plain.ends_with(end)) {
            Self::Secret
        } else if SSN.iter().any(|end| plain.ends_with(end)) {
            Self::Ssn
        } else if PHONE.contains(&plain) || PHONE[..4].iter().any(|end| plain.ends_with(end) && *end != "tel") {
            Self::Phone
        } else if plain == "id" || IDENTIFIERS.iter().any(|end| plain.ends_with(end)) {
            Self::Identifier
        } else {
            Self::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("password", Hint::Secret)]
    #[case("DB_PASSWORD", Hint::Secret)]
    #[case("x-api-key", Hint::Secret)]
    #[case("clientSecret", Hint::Secret)]
    #[case("aws_secret_access_key", Hint::Secret)]
    #[case("password_hint_text", Hint::None)]
    #[case("key", Hint::None)]
    #[case("token", Hint::None)]
    #[case("secret", Hint::None)]
    #[case("customer_ssn", Hint::Ssn)]
    #[case("social security number", Hint::Ssn)]
    #[case("phone", Hint::Phone)]
    #[case("home_phone", Hint::Phone)]
    #[case("tel", Hint::Phone)]
    #[case("hotel", Hint::None)]
    #[case("order_id", Hint::Identifier)]
    #[case("SKU", Hint::Identifier)]
    #[case("id", Hint::Identifier)]
    #[case("paid", Hint::None)]
    #[case("user_id", Hint::None)]
    #[case("cancel", Hint::None)]
    fn hint_follows_name(#[case] name: &str, #[case] expected: Hint) {
        assert_eq!(Hint::from_name(name), expected);
    }
}
