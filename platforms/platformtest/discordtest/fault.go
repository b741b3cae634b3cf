package discordtest

import "time"

// Trouble is a way in which a REST request goes wrong.
type Trouble string

// The troubles.
const (
	// AnswerStatus answers Status without acting. 429 opens a window of RetryAfter.
	AnswerStatus Trouble = "status"
	// ResetBefore cuts the connection without acting.
	ResetBefore Trouble = "reset before"
	// ResetAfter acts and cuts the connection instead of answering.
	ResetAfter Trouble = "reset after"
	// HangBefore takes the request and neither acts nor answers, until Heal.
	HangBefore Trouble = "hang before"
	// HangAfter acts and never answers.
	HangAfter Trouble = "hang after"
	// SlowBody acts, answers half, waits Delay, then the rest.
	SlowBody Trouble = "slow body"
	// HalfBody acts, answers half and cuts the connection.
	HalfBody Trouble = "half body"
	// Garbage answers 200 with something that is no JSON, and does not act.
	Garbage Trouble = "garbage"
)

// SendMessage is the route of messages, for Fault.Route, Limit and Calls. Routes are written as
// "METHOD /path/{channel}" with the names of the fake's own table: Routes lists them.
const SendMessage = "POST /channels/{channel}/messages"

// Fault scripts a trouble of REST requests.
type Fault struct {
	Trouble Trouble
	// Route is the route that goes wrong. Empty is every one but /gateway, /gateway/bot, /users/@me and files;
	// "cdn" is the files.
	Route string
	// Channel is the channel it goes wrong for. Empty is every one.
	Channel ID
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status is what AnswerStatus answers.
	Status int
	// RetryAfter of a 429, to the millisecond.
	RetryAfter time.Duration
	// Scope of a 429: "user" (the default, this bucket), "shared" (this bucket), "global" (every request of the bot).
	Scope string
	// Code and Message are the error body of AnswerStatus. Empty is the service's usual one.
	Code    int
	Message string
	// Proxy answers with a page of the proxy in front instead of JSON; a 429 then has only Retry-After, in seconds.
	Proxy bool
	// Delay is how long SlowBody takes.
	Delay time.Duration
}

// GatewayTrouble is a way in which the WebSocket goes wrong.
type GatewayTrouble string

// The troubles.
const (
	// NoHello opens connections and says nothing.
	NoHello GatewayTrouble = "no hello"
	// NoReady answers identify and resume with nothing.
	NoReady GatewayTrouble = "no ready"
	// NoAcks leaves heartbeats without an answer, while events go on.
	NoAcks GatewayTrouble = "no acks"
	// Silent makes all connections half open, those that live and new ones: nothing is sent and nothing is read
	// into account. What was to be sent is sent when it ends, to connections that still live.
	Silent GatewayTrouble = "silent"
	// NoUpgrade takes the HTTP request of a new connection and never answers it.
	NoUpgrade GatewayTrouble = "no upgrade"
	// Dropped takes connections, says hello and cuts them with a reset.
	Dropped GatewayTrouble = "dropped"
	// Refused answers 503 instead of opening a connection.
	Refused GatewayTrouble = "refused"
	// Twice sends every event twice, with sequence numbers of their own.
	Twice GatewayTrouble = "twice"
	// Backwards sends each pair of events in the wrong order. An odd one waits for the next.
	Backwards GatewayTrouble = "backwards"
	// Lost drops events: they get a number and are neither sent nor kept.
	Lost GatewayTrouble = "lost"
	// UnknownEvents sends, before each event, one of a type and an opcode that nobody knows.
	UnknownEvents GatewayTrouble = "unknown events"
)
