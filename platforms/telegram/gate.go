package telegram

import (
	"strconv"
	"strings"

	"golang.org/x/time/rate"

	"herald/platforms/wire"
)

// Telegram asks for at most one message per second in a chat, 20 per minute in a group and 30 per second
// overall (https://core.telegram.org/bots/faq). Each limiter's burst and rate together stay within that.
const (
	chatRate, chatBurst     = rate.Limit(1), 2
	groupPerMinute          = rate.Limit(15.0 / 60)
	groupBurst              = 5
	overallRate, overallTop = rate.Limit(20), 10
)

// rates are those of a chat (gateKey), or of all together.
func rates(key string) []wire.Rate {
	switch {
	case key == wire.Account:
		return []wire.Rate{{PerSecond: overallRate, Burst: overallTop}}
	case strings.HasPrefix(key, "-"): // groups, supergroups and channels have negative ids
		return []wire.Rate{{PerSecond: chatRate, Burst: chatBurst}, {PerSecond: groupPerMinute, Burst: groupBurst}}
	}
	return []wire.Rate{{PerSecond: chatRate, Burst: chatBurst}}
}

func newGate(s settings) *wire.Gate {
	return wire.NewGate(wire.GateOptions{
		Clock: s.Clock, Platform: "Telegram", Limited: s.limited, Rates: rates, Waited: s.Metrics.GateWaited,
	})
}

// gateKey is a chat's key in the gate.
func gateKey(chat int64) string { return strconv.FormatInt(chat, 10) }
