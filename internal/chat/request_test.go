package chat

import (
	"strings"
	"testing"
)

func TestRequestsThatAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "bad_request", `[]`: "bad_request", `null`: "bad_request", `"x"`: "bad_request", `{"model":"m","stream":true}`: "bad_request",
		`{"stream":true,"messages":[]}`:                                                                                      "bad_request",
		`{"model":1,"stream":true,"messages":[]}`:                                                                            "bad_request",
		`{"model":"m","stream":"true","messages":[]}`:                                                                        "bad_request",
		`{"model":"m","stream":true,"messages":{}}`:                                                                          "bad_request",
		`{"model":"m","stream":true,"messages":["x"]}`:                                                                       "bad_request",
		`{"model":"m","stream":true,"messages":[{}]}`:                                                                        "bad_request",
		`{"model":"m","stream":true,"messages":[null]}`:                                                                      "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"boss"}]}`:                                                           "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":1}]}`:                                                                "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"user","content":1}]}`:                                               "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"user","content":{}}]}`:                                              "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"assistant","tool_calls":"x"}]}`:                                     "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"assistant","tool_calls":[1]}]}`:                                     "bad_request",
		`{"model":"m","stream":true,"messages":[{"role":"tool","tool_call_id":1}]}`:                                          "bad_request",
		`{"model":"m","stream":true,"messages":[],"n":"1"}`:                                                                  "bad_request",
		`{"model":"m","stream":true,"messages":[],"n":1.5}`:                                                                  "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":{}}`:                                                               "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[1]}`:                                                              "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{}]}`:                                                             "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function"}]}`:                                            "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":1}}]}`:                      "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":"_svcSearchInIndex"}}]}`:    "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":"_meiliSearchInIndex"}}]}`:  "bad_request",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":"mine"}}]}`:                 "unimplemented_external_function_calling",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"function","function":{"name":"_svcMine"}}]}`:             "unimplemented_external_function_calling",
		`{"model":"m","stream":true,"messages":[],"tools":[{"type":"custom","custom":{"name":"x"}}]}`:                        "unimplemented_external_function_calling",
		`{"model":"m","stream":true,"messages":[],"functions":[{"name":"x"}]}`:                                               "unimplemented_external_function_calling",
		`{"model":"m","messages":[]}`:                                                                                        "unimplemented_non_streaming_chat_completions",
		`{"model":"m","stream":null,"messages":[]}`:                                                                          "unimplemented_non_streaming_chat_completions",
		`{"model":"m","stream":false,"messages":[],"tools":[1]}`:                                                             "unimplemented_non_streaming_chat_completions",
		`{"model":"m","stream":false,"messages":[],"n":2}`:                                                                   "unimplemented_multi_choice_chat_completions",
		`{"model":"m","stream":true,"messages":[],"n":0}`:                                                                    "unimplemented_multi_choice_chat_completions",
		`{"model":"m","stream":true,"messages":[]}`:                                                                          "",
		`{"model":"m","stream":true,"messages":[],"n":1,"tools":null}`:                                                       "",
		`{"model":"m","stream":true,"messages":[],"n":null,"tools":[],"functions":[]}`:                                       "",
		`{"model":"m","stream":true,"messages":[{"role":"assistant","content":null,"tool_calls":null,"tool_call_id":null}]}`: "",
	} {
		if _, err := ParseRequest([]byte(body)); string(code(err)) != want || want == "" && err != nil {
			t.Errorf("%s: %v, want %s", body, err, want)
		} else if err != nil && strings.Contains(err.Error(), "Go value") {
			t.Errorf("%s: the message names a type of Go: %v", body, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add(ask + allTools + "}")
	f.Fuzz(func(t *testing.T, body string) {
		r, err := ParseRequest([]byte(body))
		if err != nil {
			return
		}
		for _, round := range []int{1, 2, maxRounds} {
			r.body(&Settings{Source: OpenAI}, r.messages, searchDefinition("s", DefaultPrompts(), nil), round)
		}
	})
}
