package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every platform takes its home channel from the environment, under the names that the ecosystem knows, and none is
// switched on by it.
func TestHomeChannel_FromTheEnvironment(t *testing.T) {
	var env []string
	for _, b := range Default().Platforms.Blocks() {
		if b.Name == "web" {
			continue // its chats belong to one browser
		}
		p := strings.ToUpper(b.Name)
		env = append(env, p+"_HOME_CHANNEL=C-"+b.Name, p+"_HOME_CHANNEL_THREAD_ID=T-"+b.Name, p+"_HOME_CHANNEL_NAME=N-"+b.Name)
	}
	c, _, err := Load(Source{Home: home(t, "", ""), Environ: env})
	require.NoError(t, err)
	for _, b := range c.Platforms.Blocks() {
		if b.Name == "web" {
			continue
		}
		require.Equal(t, Home{Chat: "C-" + b.Name, Thread: "T-" + b.Name, Name: "N-" + b.Name}, b.Shared().HomeChannel, b.Name)
		require.False(t, b.On(), b.Name)
	}
}
