package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/all"
)

// Every platform takes its home channel from the environment, under the names that the ecosystem knows, and none is
// switched on by it.
func TestHomeChannel_FromTheEnvironment(t *testing.T) {
	var env []string
	for _, b := range Default(all.Kinds()...).Platforms.Blocks() {
		if b.Name() == "web" {
			continue // its chats belong to one browser
		}
		name := string(b.Name())
		p := strings.ToUpper(name)
		env = append(env, p+"_HOME_CHANNEL=C-"+name, p+"_HOME_CHANNEL_THREAD_ID=T-"+name, p+"_HOME_CHANNEL_NAME=N-"+name)
	}
	c, _, err := Load(Source{Kinds: all.Kinds(), Home: home(t, "", ""), Environ: env})
	require.NoError(t, err)
	for _, b := range c.Platforms.Blocks() {
		if b.Name() == "web" {
			continue
		}
		name := string(b.Name())
		require.Equal(t, Home{Chat: "C-" + name, Thread: "T-" + name, Name: "N-" + name}, b.Shared().HomeChannel, name)
		require.False(t, b.On(), name)
	}
}
