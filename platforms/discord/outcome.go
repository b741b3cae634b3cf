package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

// Codes that discordgo does not know.
const (
	codeUnknownInteraction  = discordgo.ErrCodeUnknownInteraction
	codeTagRequired         = 40067
	codeThreadAlreadyMade   = discordgo.ErrCodeThreadAlreadyCreatedForThisMessage
	codeCannotSendToUser    = discordgo.ErrCodeCannotSendMessagesToThisUser
	codeNoMutualGuilds      = 50278
	codeNonTextChannel      = discordgo.ErrCodeCannotSendMessagesInVoiceChannel
	codeEditsOfOldMessages  = discordgo.ErrCodeMaximumNumberOfEditsToMessagesOlderThanOneHourReached
	codeArchivedThread      = discordgo.ErrCodePerformedOperationOnArchivedThread
	codeInteractionAnswered = discordgo.ErrCodeInteractionHasAlreadyBeenAcknowledged
)

// kinds says what Discord's codes mean (https://discord.com/developers/docs/topics/opcodes-and-status-codes#json).
var kinds = map[int]platforms.FailureKind{
	discordgo.ErrCodeUnknownChannel:                                    platforms.NotFound,
	discordgo.ErrCodeUnknownGuild:                                      platforms.NotFound,
	discordgo.ErrCodeUnknownUser:                                       platforms.NotFound,
	discordgo.ErrCodeUnknownMessage:                                    platforms.MessageGone,
	discordgo.ErrCodeCannotEditFromAnotherUser:                         platforms.MessageGone,
	discordgo.ErrCodeUnknownEmoji:                                      platforms.Unsupported,
	discordgo.ErrCodeReactionBlocked:                                   platforms.Unsupported,
	discordgo.ErrCodeTooManyReactions:                                  platforms.Unsupported,
	codeUnknownInteraction:                                             platforms.Unsupported,
	discordgo.ErrCodeUnknownWebhook:                                    platforms.Unsupported,
	discordgo.ErrCodeInvalidWebhookTokenProvided:                       platforms.Unsupported,
	discordgo.ErrCodeMissingAccess:                                     platforms.Forbidden,
	discordgo.ErrCodeMissingPermissions:                                platforms.Forbidden,
	codeCannotSendToUser:                                               platforms.Forbidden,
	codeNoMutualGuilds:                                                 platforms.Forbidden,
	discordgo.ErrCodeUserIsBannedFromThisGuild:                         platforms.Forbidden,
	discordgo.ErrCodeChannelVerificationLevelTooHigh:                   platforms.Forbidden,
	discordgo.ErrCodeRequestEntityTooLarge:                             platforms.TooLong,
	discordgo.ErrCodeFileUploadedExceedsTheMaximumSize:                 platforms.TooLong,
	codeArchivedThread:                                                 platforms.ThreadGone,
	discordgo.ErrCodeThreadIsLocked:                                    platforms.ThreadGone,
	codeEditsOfOldMessages:                                             platforms.MessageGone,
	discordgo.ErrCodeThisActionCannotBePerformedDueToSlowmodeRateLimit: platforms.RateLimited,
}

// apiError is a refusal of the REST API.
type apiError struct {
	status int
	code   int
	text   string
}

func (e *apiError) Error() string {
	if e.text == "" {
		return "Discord answered " + strconv.Itoa(e.status)
	}
	if e.code == 0 {
		return fmt.Sprintf("Discord answered %d: %s", e.status, e.text)
	}
	return fmt.Sprintf("Discord answered %d: %s (code %d)", e.status, e.text, e.code)
}

// codeOf returns Discord's code of an error for certain, 0 when it has none.
func codeOf(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.code
	}
	return 0
}

// statusOf returns the HTTP status of a refusal, 0 when there was no answer.
func statusOf(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}

// answer is the body of every refusal.
type answer struct {
	Code       int             `json:"code"`
	Message    string          `json:"message"`
	RetryAfter float64         `json:"retry_after"`
	Global     bool            `json:"global"`
	Errors     json.RawMessage `json:"errors"`
}

// longestRefusal bounds what is repeated of a refusal.
const longestRefusal = 300

// refused says what a refusal means.
func (a *Adapter) refused(c call, resp *http.Response, raw []byte) error {
	var body answer
	ours := json.Unmarshal(raw, &body) == nil && (body.Message != "" || body.Code != 0)
	api := &apiError{status: resp.StatusCode}
	if ours {
		text := body.Message
		if len(body.Errors) > 0 {
			text += " " + string(body.Errors)
		}
		api.code, api.text = body.Code, a.scrub(cut(text, longestRefusal))
	}
	e := &platforms.SendError{Kind: platforms.BadRequest, Err: api}
	wait := max(seconds(resp.Header.Get("Retry-After")), time.Duration(body.RetryAfter*float64(time.Second)))
	if after := time.Duration(body.RetryAfter * float64(time.Second)); after > 0 {
		wait = after // the header rounds up
	}
	kind, known := kinds[body.Code]
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && wait > 0:
		e.Kind, e.RetryAfter = platforms.RateLimited, max(wait, 50*time.Millisecond)
		// A refusal that is not the API's own comes from the wall before it and is meant for the whole address.
		e.AccountWide = status == http.StatusTooManyRequests && (body.Global || resp.Header.Get("X-RateLimit-Scope") == "global" || !ours)
		a.gate.close(c.major, e.RetryAfter, e.AccountWide)
	case status >= 500:
		e.Kind, e.Certainty = platforms.Transient, platforms.Unknown
	case status == http.StatusUnauthorized && !c.open:
		e.Kind = platforms.AuthFailed
	case status == http.StatusRequestEntityTooLarge:
		e.Kind = platforms.TooLong
	case ours && known:
		e.Kind = kind
		if kind == platforms.RateLimited {
			e.RetryAfter = max(wait, time.Second)
		}
	case strings.Contains(api.text, "BASE_TYPE_MAX_LENGTH"):
		e.Kind = platforms.TooLong
	case status == http.StatusForbidden:
		e.Kind = platforms.Forbidden
	case status == http.StatusNotFound:
		e.Kind = platforms.NotFound
	}
	return e
}

// lost says what is known of a request that got no answer.
func (a *Adapter) lost(t *wire.Trace, err error) error {
	e := &platforms.SendError{Kind: platforms.Transient, Err: a.clean(err)}
	if t.Sent() {
		e.Certainty = platforms.Unknown
	}
	return e
}

func notSent(err error) error {
	return &platforms.SendError{Kind: platforms.BadRequest, Err: err}
}

// unknown reports whether the outcome of a request is not known.
func unknown(err error) bool {
	return err != nil && platforms.AsSendError(err).Certainty == platforms.Unknown
}

// isKind reports whether err is a failure of a kind.
func isKind(err error, kind platforms.FailureKind) bool {
	return err != nil && platforms.AsSendError(err).Kind == kind
}

// clean takes the secrets and the URL out of err.
func (a *Adapter) clean(err error) error {
	if err == nil {
		return nil
	}
	return wire.Clean(err, a.scrub(bare(err).Error()))
}

func (a *Adapter) scrub(text string) string { return wire.Scrub(text, a.Secrets()...) }

// cut shortens text to limit code points.
func cut(text string, limit int) string {
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
