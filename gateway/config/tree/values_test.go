package tree

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
