package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/all"
)

func FuzzYAML(f *testing.F) {
	f.Add([]byte("agent: {gateway_timeout: 90}\ngateway: {max_inbound_media_bytes: 1MB}\n"))
	f.Add([]byte("model: x\nplatforms: {telegram: {extra: {base_url: a}, token: hunter2}}\ngateway: {agent: {max_turns: 1}}"))
	f.Add([]byte("a: &a [*a]\n<<: *a\ntools: &t {platform_toolsets: &b {web: *b, <<: *t}}"))
	f.Add([]byte("display: {platforms: {telegram: {tool_progress: off}}}\n? [x]\n: y"))
	f.Add([]byte("telegram: {allow_from: [1]}\nplatforms: {telegram: {allow_from: 2}}\nlanguage: de\nmodel: {fallbacks: [{}, 3]}"))
	root := keys(all.Kinds())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		c := Default(all.Kinds()...)
		r := root.Read("config.yaml", data, c)
		c.validate(r)
		for _, p := range append(r.Errors, r.Warnings...) {
			if p.Key == "" && p.Where == "" || p.Text == "" {
				t.Fatalf("a problem that names nothing: %+v", p)
			}
		}
		ShowChanged(c, r)
		if changes := Diff(c, c); len(changes) > 0 {
			t.Fatalf("differs from itself: %v", changes)
		}
	})
}

// The redactor learns every secret that is set.
func TestConfig_Secrets(t *testing.T) {
	env := []string{}
	for _, k := range keys(all.Kinds()).Keys() {
		if k.Secret {
			env = append(env, k.Variables[0]+"=secret-"+strings.ReplaceAll(k.Name, "_", "-"))
		}
	}
	c, _, _ := Load(Source{Kinds: all.Kinds(), Environ: env})
	got := c.Secrets()
	require.Contains(t, got, "secret-password")
	require.Len(t, got, len(env))
	require.Empty(t, Default(all.Kinds()...).Secrets())
}
