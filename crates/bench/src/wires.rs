//! The wires of the benchmark: three questions in the format of each kind of client, and their answers in the format of
//! each kind of provider.

/// A kind of provider.
#[derive(Debug, Clone, Copy)]
pub struct Outbound {
    /// Its name in configuration.
    pub wire: &'static str,
    /// The model that only this provider serves.
    pub model: &'static str,
    /// The base path of the provider at the upstream.
    pub base: &'static str,
    /// The path of its calls at the upstream.
    pub path: &'static str,
    /// Further keys of its endpoint.
    pub endpoint_keys: &'static str,
    /// Its response body.
    pub answer: &'static str,
}

/// Every kind of provider.
pub const OUTBOUND: [Outbound; 5] = [
    Outbound {
        wire: "system-one",
        model: "bench/decider",
        base: "/v1",
        path: "/v1/systemone",
        endpoint_keys: "",
        answer: r#"{"model":"decider-1","answers":{"refund":{"type":"noul","noul":0.97},"queue":{"type":"choice","choice":"billing","confidence":0.61,"probabilities":{"billing":0.74,"hardware":0.24,"other":0.02}},"heat":{"type":"score","score":1.32,"confidence":0.55,"probabilities":{"0":0.06,"1":0.56,"2":0.38}}},"usage":{"input_tokens":212,"output_tokens":31}}"#,
    },
    Outbound {
        wire: "openai-decisions",
        model: "bench/openai",
        base: "/openai",
        path: "/openai/decisions",
        endpoint_keys: "",
        answer: r#"{"model":"decider-1","answers":[{"type":"predicate","name":"refund","probability":0.97},{"type":"choice","name":"queue","choice":"billing","confidence":0.61,"probabilities":[{"value":"billing","probability":0.74},{"value":"hardware","probability":0.24},{"value":"other","probability":0.02}]},{"type":"score","name":"heat","score":1.32,"confidence":0.55,"probabilities":[{"value":0,"label":"calm","probability":0.06},{"value":1,"label":"annoyed","probability":0.56},{"value":2,"label":"furious","probability":0.38}]}],"usage":{"input_tokens":212,"output_tokens":31,"total_tokens":243}}"#,
    },
    Outbound {
        wire: "gemini-decisions",
        model: "bench/gemini",
        base: "/gemini",
        path: "/gemini/decisions",
        endpoint_keys: "",
        answer: r#"{"answers":{"refund":{"type":"noul","noul":0.97,"confidence":0.97},"queue":{"type":"choice","choice":"billing","confidence":0.74,"probabilities":{"billing":0.74,"hardware":0.24,"other":0.02}},"heat":{"type":"score","score":1.32,"confidence":0.56,"legend":{"0":"calm","1":"annoyed","2":"furious"},"probabilities":{"0":0.06,"1":0.56,"2":0.38}}},"usage":{"total_input_tokens":212,"total_output_tokens":31,"total_tokens":243}}"#,
    },
    Outbound {
        wire: "sglang-decisions",
        model: "bench/sglang",
        base: "/sglang",
        path: "/sglang/decisions",
        endpoint_keys: "",
        answer: r#"{"object":"decisions","model":"decider-1","prompt_format_version":1,"answers":{"refund":{"type":"yes_no","probabilities":{"yes":0.97,"no":0.03},"label_mass":0.98},"queue":{"type":"choice","choice":"billing","probabilities":{"billing":0.74,"hardware":0.24,"other":0.02},"label_mass":0.98},"heat":{"type":"score","score":1.32,"probabilities":{"0":0.06,"1":0.56,"2":0.38},"label_mass":0.98}},"usage":{"prompt_tokens":212,"completion_tokens":0,"total_tokens":212}}"#,
    },
    Outbound {
        wire: "chat-completions",
        model: "bench/chat",
        base: "/chat",
        path: "/chat/chat/completions",
        endpoint_keys: "method = \"structured\"\n",
        answer: r#"{"id":"x","object":"chat.completion","model":"decider-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"{\"q0\":0.97,\"q1\":{\"o0\":0.74,\"o1\":0.24,\"o2\":0.02},\"q2\":{\"o0\":0.06,\"o1\":0.56,\"o2\":0.38}}"}}],"usage":{"prompt_tokens":212,"completion_tokens":31,"total_tokens":243}}"#,
    },
];

/// A kind of client.
#[derive(Debug, Clone, Copy)]
pub struct Inbound {
    /// The name in the report.
    pub name: &'static str,
    /// The path of its requests.
    pub path: &'static str,
    /// The request's members except for the model.
    members: &'static str,
}

impl Inbound {
    /// Returns the request body for a model.
    pub fn body(&self, model: &str) -> String {
        format!("{{\"model\":\"{model}\",{}", self.members)
    }
}

/// Every kind of client.
pub const INBOUND: [Inbound; 5] = [
    Inbound { name: "contract", path: "/api/v1/api/alpha/decisions", members: SYSTEM_ONE },
    Inbound { name: "/v1/systemone", path: "/v1/systemone", members: SYSTEM_ONE },
    Inbound {
        name: "OpenAI",
        path: "/v1/decisions",
        members: r#""input":[{"role":"user","content":[{"type":"input_json","data":{"subject":"Broken blender","body":"It smokes when I press the second button, and the lid does not close any more. I have written twice and nobody has answered. I want my money back, and I want it before the end of the month."}}]}],"questions":[{"type":"predicate","name":"refund","instructions":"Does the writer want a refund? Yes means: asks for money back. No means: anything else"},{"type":"choice","name":"queue","instructions":"Who handles it?","choices":[{"value":"billing","description":"money"},{"value":"hardware","description":"device faults"},{"value":"other"}]},{"type":"score","name":"heat","instructions":"How upset is the writer?","levels":[{"label":"calm"},{"label":"annoyed"},{"label":"furious"}]}],"session_id":"bench","user":"bench","trace":{"trace_id":"bench"}}"#,
    },
    Inbound {
        name: "Gemini",
        path: "/v1beta/decisions",
        members: r#""input":"Broken blender: It smokes when I press the second button, and the lid does not close any more. I have written twice and nobody has answered. I want my money back, and I want it before the end of the month.","questions":{"refund":{"type":"noul","instructions":"Does the writer want a refund?","criteria":{"true_description":"asks for money back","false_description":"anything else"}},"queue":{"type":"choice","instructions":"Who handles it?","criteria":{"billing":"money","hardware":"device faults","other":null}},"heat":{"type":"score","instructions":"How upset is the writer?","criteria":["calm","annoyed","furious"]}},"session_id":"bench","user":"bench","trace":{"trace_id":"bench"}}"#,
    },
    Inbound {
        name: "SGLang",
        path: "/v1/decisions",
        members: r#""input":{"subject":"Broken blender","body":"It smokes when I press the second button, and the lid does not close any more. I have written twice and nobody has answered. I want my money back, and I want it before the end of the month."},"questions":[{"id":"refund","type":"yes_no","question":"Does the writer want a refund?","yes":"asks for money back","no":"anything else"},{"id":"queue","type":"choice","question":"Who handles it?","options":[{"name":"billing","description":"money"},{"name":"hardware","description":"device faults"},{"name":"other"}]},{"id":"heat","type":"score","question":"How upset is the writer?","levels":["calm","annoyed","furious"]}],"session_id":"bench","user":"bench","trace":{"trace_id":"bench"}}"#,
    },
];

const SYSTEM_ONE: &str = r#""state":{"subject":"Broken blender","body":"It smokes when I press the second button, and the lid does not close any more. I have written twice and nobody has answered. I want my money back, and I want it before the end of the month."},"questions":{"refund":{"type":"noul","instructions":"Does the writer want a refund?","criteria":{"true":"asks for money back","false":"anything else"}},"queue":{"type":"choice","instructions":"Who handles it?","criteria":{"billing":"money","hardware":"device faults","other":null}},"heat":{"type":"score","instructions":"How upset is the writer?","criteria":["calm","annoyed","furious"]}},"session_id":"bench","user":"bench","trace":{"trace_id":"bench"}}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn request_and_response_bodies_are_json() {
        for inbound in INBOUND {
            let body: Value = serde_json::from_str(&inbound.body("bench/x")).unwrap();
            assert!(body["model"] == "bench/x" && body["session_id"] == "bench", "{}", inbound.name);
        }
        for outbound in OUTBOUND {
            let answer: Value = serde_json::from_str(outbound.answer).unwrap();
            assert!(answer["usage"].is_object(), "{}", outbound.wire);
        }
    }
}
