package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const word = `{"id":"c1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`

func TestPlainText(t *testing.T) {
	for _, row := range []struct {
		data, want string
		ok         bool
	}{
		{word, "word ", true},
		{strings.ReplaceAll(word, `,"`, " ,\n\t\"") + "", "word ", true},
		{`{"choices":[{"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`, "", true},
		{`{"choices":[{"delta":{"content":"Grüße, 世界 🌍"}}]}`, "Grüße, 世界 🌍", true},
		// Everything else is left to encoding/json.
		{`{"choices":[{"delta":{"content":"a\nb"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":null}}]}`, "", false},
		{`{"choices":[{"delta":{"content":[{"text":"a"}]}}]}`, "", false},
		{`{"choices":[{"delta":{"Content":"a"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, "", false},
		{`{"choices":[{"message":{"content":"a"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}}],"choices":[]}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}}],"error":{"message":"x"}}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}`, "", false},
		{`{"choices":[]}`, "", false},
		{"{\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}", "", false},
		{`{"created":01,"choices":[{"delta":{"content":"a"}}]}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}}],}`, "", false},
		{`{"choices":[{"delta":{"content":"a"}}]}x`, "", false},
		{`{}`, "", false}, {``, "", false}, {`{`, "", false}, {`{"id"`, "", false}, {`{"id":"a`, "", false}, {`null`, "", false},
	} {
		got, ok := plainText([]byte(row.data))
		require.Equal(t, row.ok, ok, "%s", row.data)
		if ok {
			require.Equal(t, row.want, got, "%s", row.data)
			agrees(t, []byte(row.data))
		}
	}
	for i := range word { // no piece of an event is an event
		_, ok := plainText([]byte(word[:i]))
		require.False(t, ok, "%s", word[:i])
	}
}

// agrees checks that what plainText accepts is all that encoding/json finds.
func agrees(t *testing.T, data []byte) {
	content, ok := plainText(data)
	if !ok {
		return
	}
	var c chunk
	require.NoError(t, json.Unmarshal(data, &c))
	require.Len(t, c.Choices, 1)
	index := c.Choices[0].Index
	require.Equal(t, chunk{Choices: []choice{{Index: index, Delta: delta{Content: text(content)}}}}, c)
}

func FuzzPlainText(f *testing.F) {
	f.Add([]byte(word))
	f.Add([]byte(`{"choices":[{"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`))
	f.Add([]byte(`{"choices": [ {"index":0,"delta":{"content":"é"}} ] , "service_tier":"default"}`))
	f.Fuzz(agrees)
}

func BenchmarkPlainText(b *testing.B) {
	data := []byte(word)
	b.ReportAllocs()
	for b.Loop() {
		plainText(data)
	}
}
