use serde_json::json;

use super::*;

#[test]
fn each_error_kind_has_status_and_message() {
    let table = [
        (ErrorKind::InvalidRequest, 400, "Invalid request parameters"),
        (ErrorKind::Unauthenticated, 401, "Missing Authentication header"),
        (ErrorKind::Forbidden, 403, "Only management keys can perform this operation"),
        (ErrorKind::NotFound, 404, "Resource not found"),
        (ErrorKind::Conflict, 409, "The resource was changed at the same time. Read it again and repeat the change."),
        (ErrorKind::PayloadTooLarge, 413, "Request payload too large"),
        (ErrorKind::RateLimited, 429, "Rate limit exceeded"),
        (ErrorKind::ClientDisconnected, 499, "The client disconnected before the response"),
        (ErrorKind::Internal, 500, "Internal Server Error"),
        (ErrorKind::ProviderFailure, 502, "Provider returned error"),
        (ErrorKind::Unavailable, 503, "Service temporarily unavailable"),
        (ErrorKind::TimedOut, 524, "Request timed out. Please try again later."),
        (ErrorKind::ProviderOverloaded, 529, "Provider returned error"),
    ];
    for (kind, status, message) in table {
        let error = ApiError::from_kind(kind);
        assert_eq!((error.status().as_u16(), error.text()), (status, message));
    }
    let credits = ApiError::from_kind(ErrorKind::InsufficientCredits);
    assert_eq!(credits.status().as_u16(), 402);
    assert!(credits.text().starts_with("Insufficient credits") && credits.text().contains("add more"));
}

#[test]
fn retry_after_rounds_up_to_at_least_one_second() {
    assert_eq!(whole_seconds(Duration::ZERO), 1);
    assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
    assert_eq!(whole_seconds(Duration::from_secs(30)), 30);
}

#[test]
fn unavailable_store_sets_retry_after() {
    let error = ApiError::from(StoreError::unavailable("disk of db-7 is full"));
    assert_eq!(error.parts().status.as_u16(), 503);
    assert_eq!(error.parts().headers, [(RETRY_AFTER, HeaderValue::from_static("1"))]);
    assert!(!error.text().contains("db-7"));
    assert_eq!(ApiError::from(StoreError::Corrupt("row 7".into())).status().as_u16(), 500);
}

#[test]
fn long_text_is_cut_in_the_middle_at_whole_characters() {
    let of = |text: String| cut(text.into()).into_owned();
    let longest = "a".repeat(MAX_TEXT_BYTES);
    assert_eq!(of(longest.clone()), longest);
    assert_eq!(of(format!("{longest}b")), format!("{}…{}b", "a".repeat(1_024), "a".repeat(511)));
    // Two bytes a character, and one before them: both places are within a character.
    let shifted = of(format!("x{}", "é".repeat(2_000)));
    assert_eq!(shifted, format!("x{}…{}", "é".repeat(511), "é".repeat(256)));
    assert_eq!(of(shifted.clone()), shifted, "what is cut stays");
}

#[test]
fn long_strings_of_metadata_are_cut() {
    let long = "m".repeat(100_000);
    let value = json!({"requested_model": long, "nearest": [long, "b"], "limit": 5, "none": null});
    let error = ApiError::from_kind(ErrorKind::NotFound).metadata("a", value.clone()).service_metadata("b", value);
    let left = cut(long.into()).into_owned();
    let expected = json!({"requested_model": left, "nearest": [left, "b"], "limit": 5, "none": null});
    assert_eq!((&error.parts().metadata["a"], &error.parts().service_metadata["b"]), (&expected, &expected));
}
