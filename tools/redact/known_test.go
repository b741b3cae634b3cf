package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactor_Known(t *testing.T) {
	r := New("a-secret-of-the-profile")
	text := "a-secret-of-the-profile and sk-ant-REDACTED"
	require.NotContains(t, r.String(text), "sk-ant-api03-aaaa")
	known := r.Known().String(text)
	require.NotContains(t, known, "a-secret-of-the-profile")
	require.Contains(t, known, "sk-ant-REDACTED", "what merely looks like a secret stays")
	require.Equal(t, text, (*Redactor)(nil).Known().String(text))
}
