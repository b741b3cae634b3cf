package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"herald/platforms"
	"herald/platforms/wire"
)

// The close codes of the gateway that waiting can't mend or that end a session
// (https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes).
const (
	closeNotAuthenticated = 4003
	closeAuthFailed       = 4004
	closeInvalidSeq       = 4007
	closeTimedOut         = 4009
	closeInvalidShard     = 4010
	closeShardingRequired = 4011
	closeInvalidVersion   = 4012
	closeInvalidIntents   = 4013
	closeDisallowed       = 4014

	// closeResuming is how we close: 1000 and 1001 would end the session.
	closeResuming = 4200
)

// Why a connection ended, beside network errors and close codes.
var (
	errReconnect = errors.New("the gateway asked to reconnect")
	errInvalid   = errors.New("the session was forgotten")
	errNotYet    = errors.New("the session can't be resumed yet")
	errDeaf      = errors.New(deafDetail)
	errSlow      = errors.New("the session was not opened in time")
	errBacklog   = errors.New("more events wait than are held in memory")
)

const deafDetail = "heartbeats are not answered"

// link keeps one connection to the gateway alive. One goroutine owns it.
type link struct {
	a        *Adapter
	sink     platforms.Sink
	wait     *wire.Backoff
	failures int       // in a row
	identify time.Time // when a session was last begun
	missed   *catchUp  // nil unless switched on
	replay   bool      // the events that come now were sent while there was no connection
}

// receive keeps a connection until ctx ends (nil) or Discord refuses the bot (*platforms.StartError).
func (a *Adapter) receive(ctx context.Context, sink platforms.Sink) error {
	a.recall(ctx)
	l := &link{a: a, sink: sink, wait: wire.NewBackoff(a.s.BackoffMin, a.s.BackoffMax)}
	if a.s.Missed.Enabled {
		l.missed = newCatchUp(a, sink)
	}
	for ctx.Err() == nil {
		err := l.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if start := l.ended(ctx, err); start != nil {
			return start
		}
	}
	return nil
}

// ended says what the end of a connection means, and waits before the next. Only an error that waiting can't
// mend comes back.
func (l *link) ended(ctx context.Context, err error) error {
	a := l.a
	code, outcome := 0, "network"
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		code = closed.Code
	}
	if start := a.fatal(code, err); start != nil {
		a.s.Metrics.Polled("auth")
		return start
	}
	rest := l.wait.Next()
	var se *platforms.SendError
	switch {
	case errors.Is(err, errReconnect):
		outcome, rest = "reconnect", 0
	case errors.Is(err, errInvalid), code == closeNotAuthenticated, code == closeInvalidSeq, code == closeTimedOut,
		code == websocket.CloseNormalClosure, code == websocket.CloseGoingAway:
		outcome = "invalid"
		a.forget()
	case errors.Is(err, errDeaf), errors.Is(err, errSlow):
		outcome = "deaf"
	case errors.As(err, &se) && se.Kind == platforms.RateLimited:
		rest = max(rest, se.RetryAfter)
	}
	l.failures++
	a.s.Metrics.Polled(outcome)
	cause := a.clean(err)
	state := "reconnecting"
	if outcome == "deaf" {
		state = "deaf"
	}
	a.health.Set(state, cause.Error())
	if outcome == "reconnect" {
		a.s.Log.Info().Msg("Discord asked to reconnect")
	} else {
		a.s.Log.Warn().Err(cause).Dur("wait", rest).Msg("the connection to Discord ended, connecting again")
	}
	_ = wire.Sleep(ctx, rest)
	return nil
}

// portal is where the switches are.
const portal = "at https://discord.com/developers/applications, your application, Bot"

// fatal returns why waiting can't mend the end of a connection, or nil.
func (a *Adapter) fatal(code int, err error) error {
	switch {
	case code == closeAuthFailed, isKind(err, platforms.AuthFailed):
		return a.s.setting("token", errors.New("was refused by Discord"), "reset the token "+portal+", and set DISCORD_BOT_TOKEN to the new one")
	case code == closeDisallowed:
		need := "Message Content Intent"
		if a.s.LookupRoles {
			need += " and Server Members Intent (allowed_roles needs it)"
		}
		return a.s.setting("token", errors.New("the intents that are needed are not granted"), "switch on "+need+" under Privileged Gateway Intents "+portal+", and start again")
	case code == closeInvalidIntents, code == closeInvalidVersion, code == closeInvalidShard:
		return a.s.setting("api_url", fmt.Errorf("the gateway refuses this version of Herald (close code %d)", code), "is it a Discord gateway of version 10?")
	case code == closeShardingRequired:
		return a.s.setting("token", errors.New("the bot is in too many servers for one connection"), "Herald serves bots of up to 2,500 servers: leave some, or use another bot")
	}
	return nil
}

// connect opens one connection and serves it until it ends. The connection is closed and its goroutines are gone
// when it returns.
func (l *link) connect(ctx context.Context) error {
	address, err := l.address(ctx)
	if err != nil {
		return err
	}
	s := l.a.current()
	if s.ID == "" {
		if err := wire.Sleep(ctx, time.Until(l.identify.Add(l.a.s.IdentifyEvery))); err != nil {
			return err
		}
		l.identify = time.Now()
	}
	l.replay = s.ID != ""
	dialer := websocket.Dialer{HandshakeTimeout: l.a.s.ConnectTimeout, Proxy: socketProxy(l.a.s), ReadBufferSize: 8 << 10}
	dialCtx, cancel := context.WithTimeout(ctx, l.a.s.ConnectTimeout)
	defer cancel()
	ws, resp, err := dialer.DialContext(dialCtx, address, http.Header{"User-Agent": {userAgent}})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		if resp != nil {
			return fmt.Errorf("the gateway answered %d: %w", resp.StatusCode, wire.Bare(err))
		}
		return wire.Bare(err)
	}
	return newConn(l, ws, s).serve(ctx)
}

// address returns where to connect: where the session can be resumed, unless that failed repeatedly.
func (l *link) address(ctx context.Context) (string, error) {
	if s := l.a.current(); s.ID != "" && s.URL != "" && l.failures < 3 {
		return withVersion(s.URL)
	}
	var found struct {
		URL    string `json:"url"`
		Shards int    `json:"shards"`
		Limit  struct {
			Remaining  *int  `json:"remaining"`
			ResetAfter int64 `json:"reset_after"`
		} `json:"session_start_limit"`
	}
	ctx, cancel := context.WithTimeout(ctx, l.a.s.ConnectTimeout)
	defer cancel()
	err := l.a.do(ctx, call{method: http.MethodGet, route: "/gateway/bot", path: "/gateway/bot"}, &found)
	if err != nil {
		return "", err
	}
	if n := found.Limit.Remaining; n != nil && *n <= 0 && found.Limit.ResetAfter > 0 && l.a.current().ID == "" {
		wait := time.Duration(min(found.Limit.ResetAfter, 86_400_000)) * time.Millisecond
		return "", &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: wait, Err: errors.New("no more sessions may be begun today")}
	}
	if found.Shards > 1 {
		l.a.s.Log.Warn().Int("shards", found.Shards).Msg("Discord recommends several connections for this bot; Herald uses one, which works up to 2,500 servers")
	}
	return withVersion(found.URL)
}

// withVersion returns a gateway's address with what we speak.
func withVersion(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return "", errors.New("the API named no address of a gateway")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.RawQuery = "v=10&encoding=json"
	return u.String(), nil
}

// intents returns which events the gateway is asked for.
func (a *Adapter) intents() discordgo.Intent {
	i := discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
		discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent
	if a.s.LookupRoles {
		i |= discordgo.IntentGuildMembers
	}
	return i
}
