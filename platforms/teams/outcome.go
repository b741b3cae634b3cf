package teams

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// refusals maps the connector's error codes to what they mean. Matching ignores case. They are the service's own:
// https://learn.microsoft.com/microsoftteams/platform/bots/build-conversational-capability#status-codes-from-bot-conversational-apis
var refusals = map[string]platforms.FailureKind{
	"messagesizetoobig":              platforms.TooLong,
	"requestentitytoolarge":          platforms.TooLong,
	"conversationblockedbyuser":      platforms.Forbidden,
	"messagewritesblocked":           platforms.Forbidden,
	"botnotinconversationroster":     platforms.Forbidden,
	"notenoughpermissions":           platforms.Forbidden,
	"botdisabledbyadmin":             platforms.Forbidden,
	"botnotregistered":               platforms.Forbidden,
	"forbiddenoperationexception":    platforms.Forbidden,
	"conversationnotfound":           platforms.NotFound,
	"invalidconversationid":          platforms.NotFound,
	"activitynotfoundinconversation": platforms.MessageGone,
	"activitynotfound":               platforms.MessageGone,
	"messagenotfound":                platforms.MessageGone,
	"contentstreamnotallowed":        platforms.Unsupported,
}

// outcome says what is known of a failed request.
func (a *Adapter) outcome(c *call, err error) *platforms.SendError {
	e := &platforms.SendError{Kind: platforms.Transient, Err: a.clean(plain(err))}
	if c.status == 0 {
		if c.Sent() {
			e.Certainty = platforms.Unknown
		}
		return e
	}
	if c.garbled {
		e.Certainty = platforms.Unknown
		return e
	}
	e.Err = errors.New(a.scrub(c.words()))
	switch status := c.status; {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && c.retryAfter > 0:
		e.Kind, e.RetryAfter = platforms.RateLimited, max(c.retryAfter, time.Second)
	case status == http.StatusPreconditionFailed: // another change of the conversation was quicker: nothing is done
	case status >= 500:
		e.Certainty = platforms.Unknown
	case status >= 300 && status < 400, status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout:
		// The answer of something in between: the connector has not taken it.
	default:
		e.Kind = c.kind()
	}
	return e
}

// kind returns what a refusal means: by its code, else by its status.
func (c *call) kind() platforms.FailureKind {
	if kind, ok := refusals[strings.ToLower(c.code)]; ok {
		return kind
	}
	switch c.status {
	case http.StatusUnauthorized:
		return platforms.AuthFailed
	case http.StatusForbidden:
		return platforms.Forbidden
	case http.StatusNotFound:
		return platforms.NotFound
	case http.StatusRequestEntityTooLarge:
		return platforms.TooLong
	case http.StatusMethodNotAllowed:
		return platforms.Unsupported
	}
	return platforms.BadRequest
}

// words describe a refusal in one line.
func (c *call) words() string {
	s := "the connector answered " + strconv.Itoa(c.status)
	if c.code != "" {
		s += " " + c.code
	}
	if c.message != "" {
		s += ": " + c.message
	}
	return s
}

// clean takes the secrets out of err.
func (a *Adapter) clean(err error) error {
	if err == nil {
		return nil
	}
	return wire.Clean(err, a.scrub(err.Error()))
}

func (a *Adapter) scrub(text string) string { return wire.Scrub(text, a.Secrets()...) }
