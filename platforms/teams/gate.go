package teams

import (
	"errors"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/wire"
)

// Teams takes of a bot in one conversation 7 messages in a second, 8 in two, 60 in thirty and 1,800 in an hour
// (https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit). Each limiter's burst and rate together
// stay within that.
const (
	quickRate, quickBurst = rate.Limit(1.8), 4
	hourRate, hourBurst   = rate.Limit(0.4), 300

	// Teams takes two changes of reactions in a second of a bot, over all conversations.
	reactRate, reactBurst = rate.Limit(1.5), 1
)

// The keys of what belongs to no chat.
const (
	topicTeams     = "teams"
	topicCreate    = "create"
	topicGraph     = "graph"
	topicReactions = "reactions"
)

// rates are those of a chat or a topic.
func rates(key string) []wire.Rate {
	switch key {
	case topicTeams, topicCreate, topicGraph:
		return nil
	case topicReactions:
		return []wire.Rate{{PerSecond: reactRate, Burst: reactBurst}}
	}
	return []wire.Rate{{PerSecond: quickRate, Burst: quickBurst}, {PerSecond: hourRate, Burst: hourBurst}}
}

func newGate(s settings) *wire.Gate {
	return wire.NewGate(wire.GateOptions{
		// A chat that is forgotten has its allowance of an hour again: a little more than it should have.
		Clock: s.Clock, Platform: "Teams", Limited: s.limited, Rates: rates, Idle: 10 * time.Minute, Waited: s.Metrics.GateWaited,
	})
}

// tooSoon says that the next state of a stream has to wait.
func tooSoon(d time.Duration) error {
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: d, Err: errors.New("over the rate of a stream")}
}
