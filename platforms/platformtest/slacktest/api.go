package slacktest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Options configures a Server. The zero value works.
type Options struct {
	// AppToken is what apps.connections.open takes. Empty is "xapp-1-A0HERALD0-1-slacktest".
	AppToken string
	// AppID is the app's id. Empty is "A0HERALD0".
	AppID string
	// RetryAfter is how long an envelope may stay unacknowledged before it is sent again. 0 is 3 s; negative
	// sends it again only on a new connection. Slack's own waits are longer.
	RetryAfter time.Duration
	// Retries is how often an envelope is sent again for want of an acknowledgement. 0 is without end (Slack
	// gives up after three); the envelope stays in Pending either way.
	Retries int
	// PingEvery is the time between WebSocket pings to the client. 0 is 10 s.
	PingEvery time.Duration
	// Keep is how many messages per channel, acts and requests are remembered, 0 for all: soak runs set it.
	Keep int
	// StreamsPerMinute limits chat.startStream and chat.stopStream in each workspace. 0 is no limit; Slack's is about 20.
	StreamsPerMinute int
	// MaxConnections is how many sockets may be open at once. 0 is 10, Slack's own bound.
	MaxConnections int
	// ResponseFor is how long a response URL works. 0 is 30 minutes.
	ResponseFor time.Duration
}

// Server is the fake. Its own zero value is not usable: see New.
type Server struct{}

// New returns a fake with no workspace that listens nowhere yet: use it as a handler, or Start it.
func New(o Options) *Server { panic("body follows") }

// Start listens on a free loopback port and returns APIURL.
func (s *Server) Start() (string, error) { panic("body follows") }

// Serve listens on addr and serves until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error { panic("body follows") }

// APIURL is the base of the Web API's methods, with a slash at its end: "http://127.0.0.1:1234/api/". Empty
// before Start.
func (s *Server) APIURL() string { panic("body follows") }

// Shut takes the server off the network: connections are cut, WebSockets too, and new ones refused. Open brings it back.
func (s *Server) Shut() { panic("body follows") }

// Open listens again on the address it had. It fails while the server is open.
func (s *Server) Open() error { panic("body follows") }

// Cut closes all connections; the server stays.
func (s *Server) Cut() error { panic("body follows") }

// Close ends the server and everything that hangs in it.
func (s *Server) Close() { panic("body follows") }

// ServeHTTP answers /api/<method>, the Socket Mode endpoint, uploads, downloads and response URLs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { panic("body follows") }

// AppToken returns the app's token, AppID its id.
func (s *Server) AppToken() string { panic("body follows") }

// AppID returns the app's id.
func (s *Server) AppID() string { panic("body follows") }

// AddTeam makes a workspace with the app installed and returns it with everything filled in.
func (s *Server) AddTeam(t Team) Team { panic("body follows") }

// SetScopes changes what the bot token of a workspace was granted, as a reinstallation does.
func (s *Server) SetScopes(team string, scopes ...string) { panic("body follows") }

// AddUser makes a person or another app's bot and returns it with everything filled in. In all methods an
// empty team is the only one.
func (s *Server) AddUser(team string, u User) User { panic("body follows") }

// AddChannel makes a conversation and returns it with everything filled in.
func (s *Server) AddChannel(team string, c Channel) Channel { panic("body follows") }

// OpenDM returns the direct message channel of the bot and a person, and makes it when there is none.
func (s *Server) OpenDM(team, user string) string { panic("body follows") }

// Join makes a user a member, the bot too; events say so. Leave takes the membership back.
func (s *Server) Join(team, channel, user string) { panic("body follows") }

// Leave ends a membership; events say so.
func (s *Server) Leave(team, channel, user string) { panic("body follows") }

// SetChannel changes a channel by f: archive it, rename it, refuse posts.
func (s *Server) SetChannel(team, channel string, f func(*Channel)) { panic("body follows") }

// Escape returns text as Slack carries it: & < > escaped. Mentions are written after it.
func Escape(text string) string { panic("body follows") }

// Unescape returns what people read of mrkdwn text: <@U1> becomes @name, <#C1|x> #x, <url|label> label, and
// &amp; &lt; &gt; their characters. Marks such as *bold* stay.
func (s *Server) Unescape(team, text string) string { panic("body follows") }

// Say makes the first person of a channel write plain text (it is escaped) and returns the ts.
func (s *Server) Say(team, channel, text string) string { panic("body follows") }

// Write makes somebody write and returns the ts.
func (s *Server) Write(p Post) string { panic("body follows") }

// Rewrite makes the author of a message edit it. The event is message_changed.
func (s *Server) Rewrite(team, channel, ts, text string) { panic("body follows") }

// Unfurl adds an attachment to a message, as Slack does for links: a message_changed that nobody wrote.
func (s *Server) Unfurl(team, channel, ts string, attachment json.RawMessage) { panic("body follows") }

// Delete makes the author of a message delete it. The event is message_deleted.
func (s *Server) Delete(team, channel, ts string) { panic("body follows") }

// React makes a user put an emoji on a message; the name has no colons. Empty user is the first person.
func (s *Server) React(team, channel, ts, user, emoji string) { panic("body follows") }

// Unreact takes an emoji off again.
func (s *Server) Unreact(team, channel, ts, user, emoji string) { panic("body follows") }

// Press makes a person press a button or pick an option, and returns the interaction's id, see Interaction.
// false: there is no such message or element.
func (s *Server) Press(p Press) (string, bool) { panic("body follows") }

// Run makes a person run a slash command and returns the interaction's id.
func (s *Server) Run(c Command) string { panic("body follows") }

// Interaction returns what became of a Press, Run or view.
func (s *Server) Interaction(id string) (Interaction, bool) { panic("body follows") }

// OpenHome makes a person open a tab of the app, "home" or "messages". Empty is "home".
func (s *Server) OpenHome(team, user, tab string) { panic("body follows") }

// OpenAssistant makes a person start an assistant thread, with the channel they look at as context (or none),
// and returns where it is.
func (s *Server) OpenAssistant(team, user, context string) (channel, thread string) {
	panic("body follows")
}

// SwitchContext makes a person look at another channel while an assistant thread is open.
func (s *Server) SwitchContext(team, channel, thread, context string) { panic("body follows") }

// Push delivers an event of any kind: event is the inner event as JSON. It returns the event id.
func (s *Server) Push(team string, event json.RawMessage) string { panic("body follows") }

// Visible returns the bot's own messages in a place as people see them now, oldest first: with thread empty
// what stands in the channel itself (roots, and replies that were sent to the channel too), otherwise the
// replies of that thread. Ephemeral ones are there too, see Message.Ephemeral.
func (s *Server) Visible(team, channel, thread string) []Message { panic("body follows") }

// Messages returns all messages of a channel, everybody's and of all threads, oldest first.
func (s *Server) Messages(team, channel string) []Message { panic("body follows") }

// Message returns one message.
func (s *Server) Message(team, channel, ts string) (Message, bool) { panic("body follows") }

// Status returns the assistant status line that shows in a thread, empty for none. It ends with the bot's
// next message there.
func (s *Server) Status(team, channel, thread string) string { panic("body follows") }

// Title returns the title of an assistant thread or agent session.
func (s *Server) Title(team, channel, thread string) string { panic("body follows") }

// Prompts returns the suggested prompts of an assistant thread as JSON, nil for none.
func (s *Server) Prompts(team, channel, thread string) json.RawMessage { panic("body follows") }

// Home returns the home tab that was published for a user as JSON, nil for none.
func (s *Server) Home(team, user string) json.RawMessage { panic("body follows") }

// Acts returns what happened in a channel, empty for all of them, oldest first.
func (s *Server) Acts(channel string) []Act { panic("body follows") }

// Watch calls f for each act from now on, while the server is locked: f must be quick and call nothing here.
func (s *Server) Watch(f func(Act)) { panic("body follows") }

// Calls returns how often a Web API method was called.
func (s *Server) Calls(method string) int { panic("body follows") }

// Requests returns the calls of a method as they came, oldest first; empty is every method.
func (s *Server) Requests(method string) []Request { panic("body follows") }

// Violations returns the requests that came inside a Retry-After window, in words.
func (s *Server) Violations() []string { panic("body follows") }

// Pending returns how many envelopes are not acknowledged, those that wait for a connection included.
func (s *Server) Pending() int { panic("body follows") }

// Replay delivers the newest n acknowledged envelopes again: same event_id, new envelope_id, retry_attempt one
// higher.
func (s *Server) Replay(n int) { panic("body follows") }

// Connections returns how many Socket Mode connections are open now, the most that ever were, and how many
// were opened in all.
func (s *Server) Connections() (now, most, opened int) { panic("body follows") }

// Disconnect sends a disconnect message to every connection: "warning", "refresh_requested" or
// "link_disabled". After the latter two the server closes the connection in a moment, unless the client did.
func (s *Server) Disconnect(reason string) { panic("body follows") }

// CutSockets closes the Socket Mode connections without a farewell; the rest of the server stays.
func (s *Server) CutSockets() { panic("body follows") }

// Deafen makes all Socket Mode connections half-open, new ones too: they stay, and nothing comes, not even
// hello or a pong, until Hear. Events wait.
func (s *Server) Deafen() { panic("body follows") }

// Hear ends Deafen: the silent connections are cut.
func (s *Server) Hear() { panic("body follows") }

// WithholdHello makes new connections do everything but say hello, until called with false.
func (s *Server) WithholdHello(on bool) { panic("body follows") }

// DisableSocketMode makes apps.connections.open refuse as an app without Socket Mode does, and sends
// link_disabled to open connections. false takes it back.
func (s *Server) DisableSocketMode(on bool) { panic("body follows") }

// Revoke refuses the bot token of a workspace from now on with code: "token_revoked", "invalid_auth",
// "token_expired", "account_inactive". token_revoked also sends the tokens_revoked event. Empty code takes it
// back.
func (s *Server) Revoke(team, code string) { panic("body follows") }

// RevokeApp refuses the app token from now on with code; empty takes it back.
func (s *Server) RevokeApp(code string) { panic("body follows") }

// Trouble is a way in which something goes wrong.
type Trouble string

// The troubles. The first nine go wrong on HTTP calls as package faults words them.
const (
	// AnswerStatus answers Status without acting, as a proxy does. 429 answers as Slack does, with
	// Retry-After, and opens a window in which calls of that method and channel are violations.
	AnswerStatus Trouble = "status"
	// AnswerError answers {"ok":false,"error":Code} without acting.
	AnswerError Trouble = "error"
	ResetBefore Trouble = "reset before"
	ResetAfter  Trouble = "reset after"
	HangBefore  Trouble = "hang before"
	HangAfter   Trouble = "hang after"
	SlowBody    Trouble = "slow body"
	HalfBody    Trouble = "half body"
	Garbage     Trouble = "garbage"
	// Late waits Delay before it acts.
	Late Trouble = "late"
	// Twice delivers the next envelope twice: two envelopes with the same event.
	Twice Trouble = "twice"
	// Backwards holds the next envelope back until another one has gone before it.
	Backwards Trouble = "backwards"
)

// Pseudo-methods for Fault.Method.
const (
	MethodUpload   = "upload"   // the POST of a file's bytes
	MethodDownload = "download" // url_private
	MethodRespond  = "respond"  // response URLs
	MethodSocket   = "socket"   // the WebSocket handshake: troubles that don't act first
)

// Fault scripts a trouble.
type Fault struct {
	Trouble Trouble
	// Method is the Web API or pseudo-method that goes wrong. Empty is every one that writes: chat.*,
	// files.*, uploads, reactions.*, assistant.*, agents.*, views.*, response URLs.
	Method string
	// Team and Channel are where. Empty is everywhere.
	Team, Channel string
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status is what AnswerStatus answers, 0 is 503. RetryAfter is in whole seconds, rounded up.
	Status     int
	RetryAfter time.Duration
	// Code is the error of AnswerError.
	Code string
	// Delay is how long SlowBody and Late take.
	Delay time.Duration
}

// Break adds a fault. Faults are used up in order.
func (s *Server) Break(f Fault) { panic("body follows") }

// Heal takes all faults and windows off, and ends requests that hang. Deafen, WithholdHello and revocations stay.
func (s *Server) Heal() { panic("body follows") }

// ManifestError is what apps.manifest.validate finds wrong.
type ManifestError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Pointer string `json:"pointer"`
}

// ValidateManifest checks an app manifest (JSON) by Slack's documented rules.
func ValidateManifest(manifest []byte) []ManifestError { panic("body follows") }

// AllScopes returns the bot scopes that the fake knows.
func AllScopes() []string { panic("body follows") }
