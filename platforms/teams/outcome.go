package teams

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

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
	e := c.Outcome(a.clean(err))
	if c.Status < 300 {
		return e
	}
	e.Err = errors.New(a.scrub(c.words()))
	switch status := c.Status; {
	case e.Kind == platforms.RateLimited, status >= 500:
	case status < 400, status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout:
		e.Kind = platforms.Transient // the answer of something in between: the connector has not taken it
	case status == http.StatusPreconditionFailed:
		e.Kind = platforms.Transient // another change of the conversation was quicker: nothing is done
	case refusals[strings.ToLower(c.code)] != "":
		e.Kind = refusals[strings.ToLower(c.code)]
	case status == http.StatusMethodNotAllowed:
		e.Kind = platforms.Unsupported
	}
	return e
}

// words describe a refusal in one line.
func (c *call) words() string {
	s := "the connector answered " + strconv.Itoa(c.Status)
	if c.code != "" {
		s += " " + c.code
	}
	if c.message != "" {
		s += ": " + c.message
	}
	return s
}

// clean takes the secrets out of err.
func (a *Adapter) clean(err error) error { return wire.Redact(err, a.Secrets()...) }

func (a *Adapter) scrub(text string) string { return wire.Scrub(text, a.Secrets()...) }
