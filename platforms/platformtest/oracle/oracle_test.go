package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProcess_Talks(t *testing.T) {
	p := Start(t, "echo.mjs")
	p.Expect("ready", nil)
	for _, word := range []string{"one", "zwei\nüber"} {
		p.Tell(map[string]string{"do": word})
		var got map[string]string
		p.Expect("heard", &got)
		require.Equal(t, word, got["do"])
	}
}
