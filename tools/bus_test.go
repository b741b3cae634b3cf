package tools

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func echo(name string) Tool {
	return Tool{Spec: Spec{Name: name, Toolset: "test", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)},
		Run: func(_ context.Context, c Call) (Result, error) { return Result{Content: string(c.Args)}, nil }}
}

func TestBus_Dispatch_CoercesAndRuns(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	require.NoError(t, r.Register(echo("echo")))
	b := NewBus(Options{Registry: r})
	got := b.Dispatch(t.Context(), Call{ID: "1", Name: "echo", Args: json.RawMessage(`{"n":"42"}`)})
	require.Equal(t, ExitOK, got.Exit)
	require.JSONEq(t, `{"n":42}`, got.Content)
	got = b.Dispatch(t.Context(), Call{ID: "2", Name: "echo", Args: json.RawMessage(`{"m":1,"n":1}`)})
	t.Log(got.Content)
	got = b.Dispatch(t.Context(), Call{ID: "2", Name: "echo", Args: json.RawMessage(``)})
	t.Log(got.Content)
	require.Equal(t, ExitInvalid, got.Exit)
}
