package model

import "strings"

// DefaultContext is the context window, in tokens, that is assumed of a model nobody knows.
const DefaultContext = 128_000

// family is what is known of models whose name contains a text.
type family struct {
	contains string
	context  int
	vision   bool
}

// families is searched from the top; the first text that the lower-case name contains wins. The windows are
// those of the providers' model pages, rounded down where variants differ: a window that is assumed too
// small costs an early compaction, one that is assumed too large costs a failed call.
var families = [...]family{
	{"claude-2", 100_000, false},
	{"claude", 200_000, true},
	{"gpt-5", 272_000, true}, // input limit of the 400,000 window
	{"gpt-4.1", 1_000_000, true},
	{"gpt-4o", 128_000, true},
	{"gpt-4-turbo", 128_000, true},
	{"gpt-4-32k", 32_000, false},
	{"gpt-4", 8_192, false},
	{"gpt-3.5", 16_000, false},
	{"gpt-oss", 128_000, false},
	{"o1-mini", 128_000, false},
	{"gemini", 1_000_000, true},
	{"gemma-3", 128_000, true},
	{"gemma3", 128_000, true},
	{"gemma", 8_192, false},
	{"grok-4-fast", 2_000_000, true},
	{"grok-4", 256_000, true},
	{"grok", 128_000, false},
	{"deepseek", 128_000, false},
	{"kimi", 256_000, false},
	{"glm-4.5v", 64_000, true},
	{"glm-4.5", 128_000, false},
	{"glm", 200_000, false},
	{"minimax", 200_000, false},
	{"qwen3-coder", 256_000, false},
	{"qwen3-vl", 256_000, true},
	{"qwen2.5-vl", 128_000, true},
	{"qwen2.5vl", 128_000, true},
	{"qwen3", 40_000, false},
	{"qwen", 32_000, false},
	{"qwq", 40_000, false},
	{"llama-4", 1_000_000, true},
	{"llama4", 1_000_000, true},
	{"llama3.2-vision", 128_000, true},
	{"llama-3.1", 128_000, false},
	{"llama3.1", 128_000, false},
	{"llama-3.2", 128_000, false},
	{"llama3.2", 128_000, false},
	{"llama-3.3", 128_000, false},
	{"llama3.3", 128_000, false},
	{"llama-3", 8_192, false},
	{"llama3", 8_192, false},
	{"llama2", 4_096, false},
	{"llava", 4_096, true},
	{"pixtral", 128_000, true},
	{"mistral-7b", 32_000, false},
	{"mixtral", 32_000, false},
	{"mistral", 128_000, false},
	{"codestral", 256_000, false},
	{"devstral", 128_000, false},
	{"magistral", 40_000, false},
	{"phi-3", 4_096, false},
	{"phi3", 4_096, false},
	{"phi", 16_000, false},
	{"command-r", 128_000, false},
	{"nova-lite", 300_000, true},
	{"nova-pro", 300_000, true},
	{"nemotron", 128_000, false},
}

// WindowOf returns the context window in tokens of the named model, and whether it sees images. A name
// that no known family contains gets DefaultContext and no vision. The table is an assumption to plan
// compaction by: config can set both.
func WindowOf(name string) (context int, vision bool) {
	name = strings.ToLower(name)
	for _, f := range families {
		if strings.Contains(name, f.contains) {
			return f.context, f.vision
		}
	}
	// OpenAI's reasoning models have names too short to look for inside others ("o3", "o4-mini").
	base := name[strings.LastIndexByte(name, '/')+1:]
	if len(base) >= 2 && base[0] == 'o' && base[1] >= '1' && base[1] <= '9' {
		return 200_000, true
	}
	return DefaultContext, false
}
