package teamstest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"herald/platforms/platformtest/faults"
)

// connectorCalls are what AnyConnector stands for.
var connectorCalls = []Endpoint{Send, Typing, Edit, Delete, React, Create, Members, Teams}

// Break adds a fault. Faults are used up in order.
func (s *Server) Break(f Fault) {
	p := refuse(cmp.Or(f.Status, http.StatusServiceUnavailable), f.Code, f.Message)
	p.code = cmp.Or(p.code, usualCode[p.status])
	p.message = cmp.Or(p.message, wording(p.status, p.code))
	p.retryAfter, p.noHeader = f.RetryAfter, f.NoHeader
	s.script.Break(faults.Fault{
		Kind: f.Kind, Times: f.Times, Status: p.status, Header: p.header(), Body: p.body(), Delay: f.Delay,
		On: func(r *http.Request) bool {
			c := callOf(r)
			switch f.On {
			case Everything, c.on:
			case AnyConnector:
				if !slices.Contains(connectorCalls, c.on) {
					return false
				}
			default:
				return false
			}
			return (f.Room == "" || f.Room == c.room) && s.windows.Left(c.window()) <= 0
		},
		Then: func(r *http.Request) {
			switch {
			case f.Kind != faults.Status:
			case p.status == http.StatusTooManyRequests:
				s.windows.Open(callOf(r).window(), f.RetryAfter)
			case p.status == http.StatusUnauthorized:
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.issued, bearer(r))
			}
		},
	})
}

// Vague makes the connector answer every new message with 202 and no id, as people report of Teams now and then.
func (s *Server) Vague(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vague = on
}

// Heal takes all faults and windows off and ends requests that hang.
func (s *Server) Heal() {
	s.script.Heal()
	s.windows.Clear()
}

// Violations returns the requests that came inside a retry-after window, in words.
func (s *Server) Violations() []string {
	return s.windows.Violations()
}

// window names what a 429 is for: one room, or one of the services without rooms.
func (c *call) window() string {
	return cmp.Or(c.room, string(c.on))
}

// politeness refuses, and records, a request inside a window that the bot was asked to wait for.
func (s *Server) politeness(c *call) error {
	if c.on == "" {
		return nil
	}
	left := s.windows.Enter(c.window(), fmt.Sprintf("%s for %s", c.on, c.window()))
	if left <= 0 {
		return nil
	}
	p := refuse(http.StatusTooManyRequests, "Throttled", wording(http.StatusTooManyRequests, "Throttled"))
	p.retryAfter = left
	return p
}

// usualCode is the connector's code for a status that has but one.
var usualCode = map[int]string{
	400: "BadSyntax", 401: "Unauthorized", 403: "Forbidden", 404: "ConversationNotFound", 412: "PreconditionFailed",
	413: "MessageSizeTooBig", 429: "Throttled", 500: "ServiceError", 502: "ServiceError", 503: "ServiceUnavailable", 504: "GatewayTimeout",
}

// wording is what Teams says beside a code (Microsoft's page "Status codes from bot conversational APIs").
func wording(status int, code string) string {
	text := map[string]string{
		"Unauthorized":                   "Authorization has been denied for this request.",
		"BotNotInConversationRoster":     "The bot is not part of the conversation roster.",
		"BotDisabledByAdmin":             "The tenant admin disabled this bot",
		"ConversationBlockedByUser":      "User blocked the conversation with the bot.",
		"ForbiddenOperationException":    "Bot is not installed in user's personal scope",
		"NotEnoughPermissions":           "Bot doesn't have permissions to perform this operation.",
		"ActivityNotFoundInConversation": "Conversation not found.",
		"ConversationNotFound":           "Conversation not found.",
		"PreconditionFailed":             "Precondition failed, please try again.",
		"MessageSizeTooBig":              "Message size too large.",
		"Throttled":                      "Too many requests.",
		"ServiceError":                   "Unknown error.",
		"ServiceUnavailable":             "Service is unavailable, please try again.",
		"GatewayTimeout":                 "The request timed out.",
	}[code]
	return cmp.Or(text, http.StatusText(status))
}

// quotas are the documented limits of sends to one conversation: how many within how long.
var quotas = []struct {
	most   int
	within time.Duration
}{{7, time.Second}, {8, 2 * time.Second}, {60, 30 * time.Second}}

// quota refuses a send above the limits. The caller holds mu.
func (s *Server) quota(r *room) error {
	if !s.o.Quotas {
		return nil
	}
	now := time.Now()
	r.sends = slices.DeleteFunc(r.sends, func(at time.Time) bool { return now.Sub(at) > 30*time.Second })
	for _, q := range quotas {
		if n := len(r.sends); n >= q.most && now.Sub(r.sends[n-q.most]) < q.within {
			p := refuse(http.StatusTooManyRequests, "Throttled", wording(http.StatusTooManyRequests, "Throttled"))
			p.retryAfter = q.within - now.Sub(r.sends[n-q.most])
			s.windows.OpenUntil(r.ID, now.Add(p.retryAfter))
			return p
		}
	}
	r.sends = append(r.sends, now)
	return nil
}
