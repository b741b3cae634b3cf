package platforms

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

func TestParseRate(t *testing.T) {
	for in, want := range map[string]Rate{"on": {On: true}, "OFF": {}, "false": {}, "0.5": {On: true, PerSecond: 0.5}, "30": {On: true, PerSecond: 30}} {
		got, err := ParseRate(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		back, err := ParseRate(got.String())
		require.NoError(t, err)
		require.Equal(t, got, back)
	}
	for _, bad := range []string{"", "-1", "0", "fast", "NaN", "Inf"} {
		_, err := ParseRate(bad)
		require.Error(t, err, bad)
	}
}
