package telegram

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/telegramtest"
)

// echo answers every message at once, with nothing between: what is measured is the adapter alone.
type echo struct {
	a      *Adapter
	answer func(platforms.Event)
}

func (e *echo) Accept(_ context.Context, events ...platforms.Event) error {
	for _, event := range events {
		e.answer(event)
	}
	return nil
}

// BenchmarkRoundTrip is one message in and one reply out, against the fake server in the same process.
func BenchmarkRoundTrip(b *testing.B) {
	fake := telegramtest.New(telegramtest.Options{Keep: 100})
	url, err := fake.Start()
	require.NoError(b, err)
	defer fake.Close()
	a, err := New(Options{Token: testToken, BaseURL: url, RateLimit: new(bool)})
	require.NoError(b, err)
	replies := make(chan struct{}, 1)
	fake.Watch(func(act telegramtest.Act) {
		if act.Verb == "send" {
			replies <- struct{}{}
		}
	})
	sink := &echo{a: a, answer: func(e platforms.Event) {
		_, _ = a.Send(context.Background(), platforms.Outgoing{Address: e.Address, Text: platforms.Text{Body: e.Message.Text}})
	}}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- a.Run(ctx, sink) }()
	for !a.Health().Inbound {
		time.Sleep(100 * time.Microsecond)
	}
	b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms-to-first-answer")
	b.ReportAllocs()
	for b.Loop() {
		fake.Say(501, "hello")
		<-replies
	}
	cancel()
	require.NoError(b, <-ended)
}
