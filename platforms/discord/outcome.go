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
	"herald/platforms/format"
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
func (a *Adapter) refused(c call, facts *wire.Call) error {
	var body answer
	ours := json.Unmarshal(facts.Body, &body) == nil && (body.Message != "" || body.Code != 0)
	api := &apiError{status: facts.Status}
	if ours {
		text := body.Message
		if len(body.Errors) > 0 {
			text += " " + string(body.Errors)
		}
		api.code, api.text = body.Code, a.scrub(cut(text, longestRefusal))
	}
	if after := time.Duration(body.RetryAfter * float64(time.Second)); after > 0 {
		facts.After = after // the header rounds up
	}
	e := facts.Outcome(api)
	kind, known := kinds[body.Code]
	switch {
	case e.Kind == platforms.RateLimited:
		e.RetryAfter = max(facts.After, 50*time.Millisecond)
		// A refusal that is not the API's own comes from the wall before it and is meant for the whole address.
		e.AccountWide = facts.Status == http.StatusTooManyRequests &&
			(body.Global || facts.Header.Get("X-RateLimit-Scope") == "global" || !ours)
		a.gate.shut(c.major, e.RetryAfter, e.AccountWide)
	case e.Kind == platforms.Transient, e.Kind == platforms.TooLong, e.Kind == platforms.AuthFailed && !c.open:
	case ours && known:
		e.Kind = kind
		if kind == platforms.RateLimited {
			e.RetryAfter = max(facts.After, time.Second)
		}
	case strings.Contains(api.text, "BASE_TYPE_MAX_LENGTH"):
		e.Kind = platforms.TooLong
	case e.Kind == platforms.AuthFailed: // the token in the path, not ours
		e.Kind = platforms.BadRequest
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

// clean takes the secrets and the URL, whose path may hold a token, out of err.
func (a *Adapter) clean(err error) error { return wire.Redact(err, a.Secrets()...) }

func (a *Adapter) scrub(text string) string { return wire.Scrub(text, a.Secrets()...) }

// cut shortens text to limit code points.
func cut(text string, limit int) string { return format.Cut(text, limit, platforms.CodePoints) }
