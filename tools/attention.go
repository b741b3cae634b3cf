package tools

import "context"

type attentionKey struct{}

// WithAttention tells calls when somebody has written to the conversation that they run for; see Attention. wanted
// returns a channel that is closed then.
func WithAttention(ctx context.Context, wanted func() <-chan struct{}) context.Context {
	return context.WithValue(ctx, attentionKey{}, wanted)
}

// Attention returns a channel that is closed when a person has written something that the agent takes in as soon as
// the running call ends: a call that only waits ends then. It is nil, and so never closed, where nobody can write.
func Attention(ctx context.Context) <-chan struct{} {
	if wanted, ok := ctx.Value(attentionKey{}).(func() <-chan struct{}); ok {
		return wanted()
	}
	return nil
}
