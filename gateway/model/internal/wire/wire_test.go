package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/gateway/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEvents_Next(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	e := NewEvents(strings.NewReader(": c\n\nevent: a\ndata: 1\ndata:2\nid: 9\n\n\n\nevent: lost\n\ndata: " + long + "\r\n\r\ndata:  two spaces\n\nretry: 1\ndata: end"))
	var got []string
	for {
		event, data, err := e.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, string(event)+"|"+string(data))
	}
	require.Equal(t, []string{"a|1\n2", "|" + long, "| two spaces", "|end"}, got)
}

func TestEvents_TooLong(t *testing.T) {
	_, _, err := NewEvents(io.LimitReader(endless{}, 40<<20)).Next()
	require.ErrorIs(t, err, errTooLong)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestAppendString agrees with encoding/json on what the string is.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "s")
		var got string
		b := AppendString(nil, s)
		require.NoError(rt, json.Unmarshal(b, &got), "%q", b)
		require.True(rt, utf8.Valid(b))
		std, err := json.Marshal(s)
		require.NoError(rt, err)
		var want string
		require.NoError(rt, json.Unmarshal(std, &want))
		require.Equal(rt, want, got)
	})
}

func TestSchemas_Compact(t *testing.T) {
	var s Schemas
	for in, want := range map[string]string{
		"": `{"type":"object","properties":{}}`, "null": `{"type":"object","properties":{}}`, "[1]": `{"type":"object","properties":{}}`, "{oops": `{"type":"object","properties":{}}`,
		`{ "type": "object" }`: `{"type":"object"}`, `{"properties":{}}`: `{"properties":{},"type":"object"}`,
	} {
		for range 2 {
			require.Equal(t, want, string(s.Compact(json.RawMessage(in))), in)
		}
	}
	require.Len(t, s.sound, 6, "each is remembered under what was asked")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "5", 5 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After", "2s", 2 * time.Second},
		{"Retry-After", "Sun, 29 Nov 2026 12:00:30 GMT", 30 * time.Second}, {"Retry-After", "Sun, 29 Nov 2026 11:00:00 GMT", 0},
		{"Retry-After", "soon", 0}, {"Retry-After", "-1", 0}, {"Retry-After", "NaN", 0}, {"Retry-After", "+Inf", 24 * time.Hour},
		{"X-Ratelimit-Reset", "1795953610", 10 * time.Second}, {"X-Ratelimit-Reset", "1795953610000", 10 * time.Second}, {"X-Ratelimit-Reset", "7", 7 * time.Second},
		{"X-Ratelimit-Reset-Tokens", "6m0s", 6 * time.Minute}, {"Anthropic-Ratelimit-Requests-Reset", "2026-11-29T12:01:00Z", time.Minute},
	} {
		require.Equal(t, c.want, retryAfter(http.Header{c.name: {c.value}}, now), "%s: %s", c.name, c.value)
	}
	require.Equal(t, int64(1795953600), now.Unix())
}

func TestClient_Error_Scrubs(t *testing.T) {
	c := New(Options{Provider: "p", Secrets: []string{"hunter2hunter2", "abc", ""}})
	for in, want := range map[string]string{
		"key hunter2hunter2 is bad": "key [key] is bad", "Incorrect API key provided: sk-abcd****wxyz.": "Incorrect API key provided: [key]",
		"Authorization: Bearer abcdefgh12345": "Authorization: [key]", "the task-force-one-two met": "the task-force-one-two met", "sk-1": "sk-1", "abc": "abc",
		"\xff\xfe": "", strings.Repeat("é", 400): strings.Repeat("é", 250) + "…",
	} {
		require.Equal(t, want, c.Error(model.Down, 0, errors.New(in)).Err.Error())
	}
	long := c.Error(model.Down, 0, errors.New(strings.Repeat("é", 400))).Err.Error()
	require.True(t, utf8.ValidString(long))
	require.LessOrEqual(t, len(long), maxCause+3)
}

func FuzzParseReported(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"x","code":1,"type":null}}`, `[{"error":"x"}]`, `{"detail":[{"msg":"x"}]}`, `{"message":"x","code":"y"}`, `{}`, `[]`, `{"error":[]}`} {
		f.Add([]byte(s), 400)
	}
	c := New(Options{})
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		e := c.statusError(status, http.Header{}, body)
		require.True(t, utf8.ValidString(e.Err.Error()))
		if r, ok := ParseReported(body); ok {
			require.NotEmpty(t, c.StreamError(r).Kind)
		}
	})
}
