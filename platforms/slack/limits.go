package slack

import (
	"context"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms/wire"
)

// Slack asks for about one message per second in a channel, with bursts, and gives each method its own limit in a
// workspace (https://docs.slack.dev/apis/web-api/rate-limits). Each limiter's burst and rate together stay within
// that.
const (
	chatRate, chatBurst     = rate.Limit(1), 5
	editRate, editBurst     = rate.Limit(40.0 / 60), 10 // chat.update: 50 a minute
	streamRate, streamBurst = rate.Limit(10.0 / 60), 8  // chat.startStream: 20 a minute
	appendRate, appendBurst = rate.Limit(80.0 / 60), 20 // chat.appendStream: 100 a minute
)

// paced are the methods with a rate of their own; others count as posts of their channel.
var paced = map[string]wire.Rate{
	"chat.update":       {PerSecond: editRate, Burst: editBurst},
	"chat.startStream":  {PerSecond: streamRate, Burst: streamBurst},
	"chat.appendStream": {PerSecond: appendRate, Burst: appendBurst},
}

// gate is the gate of wire in terms of Slack: a request has a method, and a channel or none. Its keys are methods, channels
// ("#" and the id) and the posts of channels.
type gate struct{ *wire.Gate }

const postsKey = "posts "

func newGate(s *settings) gate {
	posts := wire.Rate{PerSecond: chatRate, Burst: chatBurst}
	if s.PostsPerSecond > 0 {
		posts.PerSecond = rate.Limit(s.PostsPerSecond)
	}
	return gate{wire.NewGate(wire.GateOptions{
		Clock: s.Clock, Platform: "Slack", Limited: s.limited, Waited: s.Metrics.GateWaited,
		Rates: func(key string) []wire.Rate {
			if strings.HasPrefix(key, postsKey) {
				return []wire.Rate{posts}
			}
			if r, ok := paced[key]; ok {
				return []wire.Rate{r}
			}
			return nil
		},
	})}
}

// open returns a RateLimited error while the method or the channel is closed by Slack.
func (g gate) open(method, chat string) error { return g.Check(method, "#"+chat) }

// shut closes the channel for d, and the method for all of them where its limit is the workspace's: messages alone are
// counted by channel.
func (g gate) shut(method, chat string, d time.Duration) {
	if chat != "" {
		g.Close(d, "#"+chat)
	}
	if chat == "" || method != "chat.postMessage" {
		g.Close(d, method)
	}
}

// pass waits for the turn of a request; see wire.Gate.
func (g gate) pass(ctx context.Context, method, chat string, skip bool) error {
	if _, ok := paced[method]; ok {
		return g.Pass(ctx, skip, method, "#"+chat)
	}
	return g.Pass(ctx, skip, method, "#"+chat, postsKey+chat)
}
