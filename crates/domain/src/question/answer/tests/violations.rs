//! Tests of invalid answers.

use super::*;

#[rstest]
#[case::array("[]".to_owned())]
#[case::string("\"x\"".to_owned())]
#[case::missing(format!("{{{N},{C},{S}}}"))]
#[case::none("{}".to_owned())]
#[case::another_name(format!(r#"{{{N},{C},{S},"other":{{"type":"noul","noul":1}}}}"#))]
#[case::one_more(format!(r#"{{{N},{C},{S},{B},"other":{{"type":"noul","noul":1}}}}"#))]
#[case::twice(format!("{{{N},{C},{S},{S}}}"))]
#[case::twice_at_once(format!("{{{N},{N},{C},{S},{B}}}"))]
#[case::another_case(format!("{{{N},{C},{S},{}}}", B.replace("\"b\"", "\"B\"")))]
fn check_rejects_other_names(#[case] answers: String) {
    assert!(check(&answers).is_err());
}

#[rstest]
#[case::no_object("n", "0.5")]
#[case::null("n", "null")]
#[case::no_type("n", r#"{"noul":0.5}"#)]
#[case::type_is_no_string("n", r#"{"type":1,"noul":0.5}"#)]
#[case::type_of_another_question("n", r#"{"type":"score","score":0}"#)]
#[case::unknown_type("n", r#"{"type":"yes_no","noul":0.5}"#)]
#[case::our_own_error("n", r#"{"type":"error","error":"timed_out"}"#)]
#[case::member_twice("n", r#"{"type":"noul","noul":0.5,"noul":0.6}"#)]
#[case::type_twice("n", r#"{"type":"noul","type":"refusal","noul":0.5}"#)]
#[case::no_number("n", r#"{"type":"noul"}"#)]
#[case::null_number("n", r#"{"type":"noul","noul":null}"#)]
#[case::number_as_string("n", r#"{"type":"noul","noul":"0.5"}"#)]
#[case::word("n", r#"{"type":"noul","noul":"NaN"}"#)]
#[case::boolean("n", r#"{"type":"noul","noul":true}"#)]
#[case::infinite("n", r#"{"type":"noul","noul":1e999}"#)]
#[case::minus_infinite("n", r#"{"type":"noul","noul":-1e999}"#)]
#[case::above("n", r#"{"type":"noul","noul":1.0001}"#)]
#[case::below("n", r#"{"type":"noul","noul":-0.01}"#)]
#[case::noul_with_broken_confidence("n", r#"{"type":"noul","noul":1,"confidence":2}"#)]
fn check_rejects_invalid_noul(#[case] name: &str, #[case] answer: &str) {
    for rules in [RULES, COMPUTED, NATIVE] {
        assert!(check_one(name, answer, rules).is_err());
    }
}

#[rstest]
#[case::no_option(r#""confidence":1"#)]
#[case::another_option(r#""choice":"w""#)]
#[case::not_a_string(r#""choice":1"#)]
#[case::another_case(r#""choice":"X""#)]
#[case::confidence_above(r#""choice":"x","confidence":1.5"#)]
#[case::confidence_below(r#""choice":"x","confidence":-0.5"#)]
#[case::confidence_infinite(r#""choice":"x","confidence":1e999"#)]
#[case::confidence_as_string(r#""choice":"x","confidence":"high""#)]
#[case::distribution_array(r#""choice":"x","probabilities":[1,0,0]"#)]
#[case::incomplete(r#""choice":"x","probabilities":{"x":0.5,"y":0.5}"#)]
#[case::empty(r#""choice":"x","probabilities":{}"#)]
#[case::foreign_for_own(r#""choice":"x","probabilities":{"x":0.5,"y":0.25,"w":0.25}"#)]
#[case::foreign_besides(r#""choice":"x","probabilities":{"x":0.5,"y":0.25,"z":0.25,"w":0}"#)]
#[case::duplicate(r#""choice":"x","probabilities":{"x":0.5,"y":0.25,"y":0.25}"#)]
#[case::duplicate_besides(r#""choice":"x","probabilities":{"x":0.5,"y":0.25,"z":0.25,"z":0.25}"#)]
#[case::negative(r#""choice":"x","probabilities":{"x":1,"y":0.1,"z":-0.1}"#)]
#[case::above_one(r#""choice":"x","probabilities":{"x":1.01,"y":0,"z":0}"#)]
#[case::infinite(r#""choice":"x","probabilities":{"x":1e999,"y":0,"z":0}"#)]
#[case::null_entry(r#""choice":"x","probabilities":{"x":1,"y":0,"z":null}"#)]
#[case::sum_far_off(r#""choice":"x","probabilities":{"x":0.5,"y":0.1,"z":0.1}"#)]
#[case::all_zero(r#""choice":"x","probabilities":{"x":0,"y":0,"z":0}"#)]
#[case::not_the_likeliest(r#""choice":"x","probabilities":{"x":0.49,"y":0.5,"z":0.01}"#)]
#[case::by_a_hair(r#""choice":"x","probabilities":{"x":0.333333,"y":0.333334,"z":0.333333}"#)]
fn check_rejects_invalid_choice(#[case] members: &str) {
    for rules in [RULES, COMPUTED, NATIVE] {
        assert!(check_one("c", &format!(r#"{{"type":"choice",{members}}}"#), rules).is_err());
    }
}

#[rstest]
#[case::no_score(r#""confidence":1"#)]
#[case::off_the_scale(r#""score":2.01"#)]
#[case::below_it(r#""score":-0.01"#)]
#[case::infinite(r#""score":1e999"#)]
#[case::as_string(r#""score":"1""#)]
#[case::legend(r#""score":1,"legend":["a","b","c"]"#)]
#[case::not_the_expectation(r#""score":2,"probabilities":{"0":0.5,"1":0.5,"2":0}"#)]
#[case::the_mode_instead(r#""score":1,"probabilities":{"0":0.4,"1":0.6,"2":0}"#)]
#[case::levels_by_name(r#""score":1,"probabilities":{"a":0,"b":1,"c":0}"#)]
#[case::a_level_too_many(r#""score":1,"probabilities":{"0":0,"1":1,"2":0,"3":0}"#)]
#[case::a_level_too_few(r#""score":1,"probabilities":{"0":0,"1":1}"#)]
#[case::level_twice(r#""score":1,"probabilities":{"0":0,"1":1,"01":0}"#)]
#[case::sum(r#""score":1,"probabilities":{"0":0,"1":0.9,"2":0}"#)]
fn check_rejects_invalid_score(#[case] members: &str) {
    for rules in [RULES, COMPUTED, NATIVE] {
        assert!(check_one("s", &format!(r#"{{"type":"score",{members}}}"#), rules).is_err());
    }
}

#[rstest]
#[case::none("null")]
#[case::array("[0,0,1,1]")]
#[case::side_missing(r#"{"left":0,"top":0,"right":1}"#)]
#[case::outside(r#"{"left":0,"top":0,"right":1.5,"bottom":1}"#)]
#[case::inside_out(r#"{"left":0.6,"top":0,"right":0.5,"bottom":1}"#)]
#[case::upside_down(r#"{"left":0,"top":1,"right":1,"bottom":0}"#)]
#[case::side_twice(r#"{"left":0,"left":0.1,"top":0,"right":1,"bottom":1}"#)]
#[case::infinite(r#"{"left":-1e999,"top":0,"right":1,"bottom":1}"#)]
fn check_rejects_invalid_box(#[case] rectangle: &str) {
    assert!(check_one("b", &format!(r#"{{"type":"box","box":{rectangle}}}"#), RULES).is_err());
    assert!(check_one("b", r#"{"type":"box"}"#, RULES).is_err());
}

/// The sum of three entries with two decimals may deviate by 0.015.
#[rstest]
#[case::exact("0.34", "0.33", "0.33", true)]
#[case::below_by_one_step("0.33", "0.33", "0.33", true)]
#[case::above_by_one_step("0.34", "0.34", "0.33", true)]
#[case::at_the_edge_above("0.345", "0.335", "0.335", true)]
#[case::beyond_it_above("0.345", "0.335", "0.33501", false)]
#[case::at_the_edge_below("0.335", "0.325", "0.325", true)]
#[case::beyond_it_below("0.335", "0.325", "0.32499", false)]
fn check_allows_half_a_step_per_entry(#[case] x: &str, #[case] y: &str, #[case] z: &str, #[case] passes: bool) {
    let answer = format!(r#"{{"type":"choice","choice":"x","probabilities":{{"x":{x},"y":{y},"z":{z}}}}}"#);
    assert_eq!(check_one("c", &answer, RULES).is_ok(), passes);
    let finer = AnswerRules { decimals: 6, ..RULES };
    let exact = x.len() == 4 && y.len() == 4 && format!("{x}{y}{z}") == "0.340.330.33";
    assert_eq!(check_one("c", &answer, finer).is_ok(), exact, "six decimals allow far less");
    let coarser = AnswerRules { decimals: 1, ..RULES };
    assert!(check_one("c", &answer, coarser).is_ok());
}

/// Three levels of two decimals: (1 + 0 + 1 + 2) half steps, that is 0.02.
#[rstest]
#[case("0.7", true)]
#[case("0.72", true)]
#[case("0.68", true)]
#[case("0.72001", false)]
#[case("0.67999", false)]
fn check_allows_rounding_error_in_score(#[case] score: &str, #[case] passes: bool) {
    let answer = format!(r#"{{"type":"score","score":{score},"probabilities":{{"0":0.5,"1":0.3,"2":0.2}}}}"#);
    assert_eq!(check_one("s", &answer, RULES).is_ok(), passes);
}

#[rstest]
#[case("x")]
#[case("y")]
fn check_accepts_either_of_tied_options(#[case] chosen: &str) {
    let answer = format!(r#"{{"type":"choice","choice":"{chosen}","probabilities":{{"y":0.4,"z":0.2,"x":0.4}}}}"#);
    assert!(check_one("c", &answer, RULES).is_ok());
    assert!(check_one("c", &answer.replace(&format!("\"{chosen}\",\"p"), "\"z\",\"p"), RULES).is_err());
}

#[rstest]
#[case::no_distribution("c", r#"{"type":"choice","choice":"z"}"#)]
#[case::null_distribution("c", r#"{"type":"choice","choice":"z","probabilities":null,"confidence":null}"#)]
#[case::legend("s", r#"{"type":"score","score":2,"legend":{"0":"a"}}"#)]
#[case::null_legend("s", r#"{"type":"score","score":2,"legend":null}"#)]
#[case::unknown_members("n", r#"{"type":"noul","noul":1,"metadata":{"x":[1e999]}}"#)]
#[case::exponents("n", r#"{"type":"noul","noul":5E-1}"#)]
#[case::bounds("n", r#"{"type":"noul","noul":-0.0}"#)]
fn check_accepts_absent_optional_members(#[case] name: &str, #[case] answer: &str) {
    let answers = check_one(name, answer, RULES).unwrap();
    assert_eq!(answers.json().text(), format!("{{\"{name}\":{answer}}}"), "byte for byte");
}

#[test]
fn check_gives_full_confidence_to_single_option_and_level() {
    let single = read(r#"{"c":{"type":"choice","criteria":{"x":null}},"s":{"type":"score","criteria":["a"]}}"#);
    let check = |text: &str| Answers::check(&single, &Json::parse(text).unwrap(), COMPUTED);
    let certain = r#"{"c":{"type":"choice","choice":"x","probabilities":{"x":1.0}},"s":{"type":"score","score":0,"probabilities":{"0":1}}}"#;
    let answers = check(certain).unwrap();
    assert!(answers.json().text().contains(r#""probabilities":{"x":1.0},"confidence":1}"#));
    assert!(check(&certain.replace("\"score\":0", "\"score\":1")).is_err());
    assert!(check(&certain.replace("\"x\":1.0", "\"x\":0.9")).is_err());
}
