package telegram

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"herald/platforms"
	"herald/platforms/wire"
)

// refusals maps what the Bot API writes in a description to what it means. The first match wins; matching
// ignores case. The texts are the service's own, which has no finer error codes.
var refusals = []struct {
	text string
	kind platforms.FailureKind
}{
	{"message thread not found", platforms.ThreadGone},
	{"topic_deleted", platforms.ThreadGone},
	{"topic_closed", platforms.ThreadGone},
	{"topic_id_invalid", platforms.ThreadGone},
	{"message to edit not found", platforms.MessageGone},
	{"message can't be edited", platforms.MessageGone},
	{"message to react not found", platforms.MessageGone},
	{"message to delete not found", platforms.MessageGone},
	{"message can't be deleted", platforms.MessageGone},
	{"message_id_invalid", platforms.MessageGone},
	{"message is too long", platforms.TooLong},
	{"message_too_long", platforms.TooLong},
	{"caption is too long", platforms.TooLong},
	{"caption_too_long", platforms.TooLong},
	{"file is too big", platforms.TooLong},
	{"chat not found", platforms.NotFound},
	{"user not found", platforms.NotFound},
	{"peer_id_invalid", platforms.NotFound},
	{"group chat was deactivated", platforms.NotFound},
	{"user is deactivated", platforms.Forbidden},
	{"not enough rights", platforms.Forbidden},
	{"have no rights", platforms.Forbidden},
	{"need administrator rights", platforms.Forbidden},
	{"chat_write_forbidden", platforms.Forbidden},
	{"chat_admin_required", platforms.Forbidden},
	{"chat_restricted", platforms.Forbidden},
	{"chat_send_", platforms.Unsupported}, // this kind of media is not allowed here
	{"voice_messages_forbidden", platforms.Unsupported},
	{"reaction_invalid", platforms.Unsupported},
}

// outcome says what is known of a failed call.
func (a *Adapter) outcome(c *call, err error) *platforms.SendError {
	refused := c.refusal()
	e := c.Outcome(a.clean(err))
	switch {
	case refused.Description != "":
		e.Err = errors.New(a.scrub(refused.Description))
	case c.Status == http.StatusOK:
		e.Err = errors.New("the answer of the Bot API server could not be read")
	case c.Status >= 400: // a proxy's page, which would fill the log
		e.Err = errors.New("the Bot API server answered " + strconv.Itoa(c.Status))
	}
	switch e.Kind {
	case platforms.AuthFailed:
		a.doubtToken()
	case platforms.BadRequest, platforms.NotFound:
		e.Kind = kindOf(refused.Description)
	}
	return e
}

func kindOf(description string) platforms.FailureKind {
	text := strings.ToLower(description)
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			return r.kind
		}
	}
	return platforms.BadRequest
}

// clean takes the secrets out of err.
func (a *Adapter) clean(err error) error { return wire.Redact(err, a.Secrets()...) }

func (a *Adapter) scrub(text string) string { return wire.Scrub(text, a.Secrets()...) }
