package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"herald/platforms"
)

// No way of printing a secret shows it, alone or inside something else.
func TestSecret_NeverPrints(t *testing.T) {
	const value = "hunter2-hunter2"
	s := NewSecret(value)
	type outer struct {
		S Secret
		P *Secret
		M map[string]Secret
	}
	o := outer{s, &s, map[string]Secret{"k": s}}
	var all strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		fmt.Fprintf(&all, verb+" "+verb+"\n", s, o)
	}
	j, err := json.Marshal(o)
	require.NoError(t, err)
	y, err := yaml.Marshal(o)
	require.NoError(t, err)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "s", s, "o", o)
	l := zerolog.New(&logged)
	l.Info().Interface("s", s).Interface("o", o).Stringer("t", s).Msg("x")
	all.Write(j)
	all.Write(y)
	all.Write(logged.Bytes())
	require.NotContains(t, all.String(), "hunter2")
	require.NotContains(t, all.String(), fmt.Sprintf("%x", value))
	require.Contains(t, all.String(), "***")
	require.Equal(t, value, s.Reveal())
	require.Equal(t, "", Secret{}.String())
	require.False(t, Secret{}.IsSet())
}

func TestPlaceholder(t *testing.T) {
	for _, v := range []string{"changeme", "CHANGEME", "your-token-here", "abc", " ", "xxxxxxxx", "<token>", "${TOKEN}", "$(cat x)", "***", "a\nbcdef", "<your-token-here>"} {
		require.NotEmpty(t, placeholder(v), v)
	}
	for _, v := range []string{"abcd", "123:ABC", "sk-proj-changeme2", "none", "xoxb-1-2", "p@ss word", "ollama"} {
		require.Empty(t, placeholder(v), v)
	}
}

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]Bytes{"0": 0, "10": 10, "10b": 10, "1k": 1024, "1KB": 1000, "1 KiB": 1024, "1.5MiB": 3 << 19, "2GB": 2e9, "128MiB": 128 << 20} {
		got, err := ParseBytes(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"", "x", "-1", "1TB", "NaN", "1e300", "MiB"} {
		_, err := ParseBytes(bad)
		require.Error(t, err, bad)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "b"))
		back, err := ParseBytes(b.String())
		if err != nil || back != b {
			t.Fatalf("%d is shown as %s, which reads as %d, %v", b, b, back, err)
		}
	})
}

func TestParseRate(t *testing.T) {
	for in, want := range map[string]Rate{"on": {On: true}, "OFF": {}, "false": {}, "0.5": {On: true, PerSecond: 0.5}, "30": {On: true, PerSecond: 30}} {
		got, err := platforms.ParseRate(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		back, err := platforms.ParseRate(got.String())
		require.NoError(t, err)
		require.Equal(t, got, back)
	}
	for _, bad := range []string{"", "-1", "0", "fast", "NaN", "Inf"} {
		_, err := platforms.ParseRate(bad)
		require.Error(t, err, bad)
	}
}

func TestParseDotEnv(t *testing.T) {
	vars, problems := ParseDotEnv([]byte("\ufeff# comment\n\nA=1\nexport B = two words # comment\nC='single # \\n'\nD=\"double # \\n\\\"\\$\\q\" # c\nE=\nF=a#b\r\nG=x=y\nexport=1\n" +
		"H=\"open\n=1\n1A=2\nno equals\nI=\"a\"b\nJ=#c\nB=3\n"))
	got := map[string]string{}
	for _, v := range vars {
		got[v.Name] = v.Value
	}
	require.Equal(t, map[string]string{"A": "1", "B": "3", "C": `single # \n`, "D": "double # \n\"$\\q", "E": "", "F": "a#b", "G": "x=y", "export": "1", "J": ""}, got)
	require.Equal(t, []string{"line 11: the value of H has no closing quote", "line 12: the name before = may have letters, digits and _ only",
		"line 13: the name before = may have letters, digits and _ only", "line 14: want NAME=value", "line 15: the value of I goes on after its closing quote"}, problems)
	require.Equal(t, 3, vars[0].Line)
}

// What a person can write in double quotes comes back.
func TestParseDotEnv_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "value")
		line := `KEY="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(want) + `"`
		vars, problems := ParseDotEnv([]byte(line))
		if len(problems) > 0 || len(vars) != 1 || vars[0].Value != want {
			t.Fatalf("%s gave %+v %v", line, vars, problems)
		}
	})
}

func FuzzDotEnv(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x'\nC=\"y\\n\" # z\n"))
	f.Add([]byte("A=\"\\"))
	f.Add([]byte("\xff\xfe=\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, problems := ParseDotEnv(data)
		lines := bytes.Count(data, []byte("\n")) + 1
		if len(vars)+len(problems) > lines {
			t.Fatalf("%d variables and %d problems in %d lines", len(vars), len(problems), lines)
		}
		for _, v := range vars {
			if !envVarName.MatchString(v.Name) || v.Line < 1 || v.Line > lines {
				t.Fatalf("bad variable %+v", v)
			}
		}
		for _, p := range problems {
			if !strings.HasPrefix(p, "line ") {
				t.Fatalf("a problem without a place: %q", p)
			}
		}
	})
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("agent: {gateway_timeout: 90}\ngateway: {max_inbound_media_bytes: 1MB}\n"))
	f.Add([]byte("model: x\nplatforms: {telegram: {extra: {base_url: a}, token: hunter2}}\ngateway: {agent: {max_turns: 1}}"))
	f.Add([]byte("a: &a [*a]\n<<: *a\ntools: &t {platform_toolsets: &b {web: *b, <<: *t}}"))
	f.Add([]byte("display: {platforms: {telegram: {tool_progress: off}}}\n? [x]\n: y"))
	f.Add([]byte("telegram: {allow_from: [1]}\nplatforms: {telegram: {allow_from: 2}}\nlanguage: de\nmodel: {fallbacks: [{}, 3]}"))
	root := keyTree()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		c, r := Default(), &Report{origins: map[string]Origin{}}
		decodeFile(root, c, r, "config.yaml", data)
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
	keyTree().each(func(k *key) {
		if k.typ == secretType {
			env = append(env, k.env[0]+"=secret-"+strings.ReplaceAll(k.name, "_", "-"))
		}
	})
	c, _, _ := Load(Source{Environ: env})
	got := c.Secrets()
	require.Contains(t, got, "secret-password")
	require.Len(t, got, len(env))
	require.Empty(t, Default().Secrets())
}
