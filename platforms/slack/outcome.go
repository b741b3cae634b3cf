package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// refusals maps Slack's error codes to what they mean. Codes that are not here are BadRequest: a retry can't help.
// https://docs.slack.dev/reference/methods lists them by method.
var refusals = map[string]platforms.FailureKind{
	"ratelimited": platforms.RateLimited, "rate_limited": platforms.RateLimited, "message_limit_exceeded": platforms.RateLimited,

	"channel_not_found": platforms.NotFound, "user_not_found": platforms.NotFound, "users_not_found": platforms.NotFound,
	"user_not_visible": platforms.NotFound, "no_user": platforms.NotFound,

	"not_in_channel": platforms.Forbidden, "is_archived": platforms.Forbidden, "restricted_action": platforms.Forbidden,
	"restricted_action_read_only_channel": platforms.Forbidden, "restricted_action_thread_only_channel": platforms.Forbidden,
	"restricted_action_non_threadable_channel": platforms.Forbidden, "restricted_action_thread_locked": platforms.Forbidden,
	"cannot_dm_bot": platforms.Forbidden, "user_disabled": platforms.Forbidden, "messages_tab_disabled": platforms.Forbidden,
	"ekm_access_denied": platforms.Forbidden, "access_denied": platforms.Forbidden, "team_access_not_granted": platforms.Forbidden,
	"user_is_restricted": platforms.Forbidden,

	"thread_not_found": platforms.ThreadGone, "invalid_thread_ts": platforms.ThreadGone, "cannot_reply_to_message": platforms.ThreadGone,

	"message_not_found": platforms.MessageGone, "cant_update_message": platforms.MessageGone, "edit_window_closed": platforms.MessageGone,
	"cant_delete_message": platforms.MessageGone, "bad_timestamp": platforms.MessageGone,

	"msg_too_long": platforms.TooLong, "msg_blocks_too_long": platforms.TooLong, "file_uploads_disabled": platforms.Unsupported,
	"file_upload_size_restricted": platforms.TooLong,

	"invalid_auth": platforms.AuthFailed, "not_authed": platforms.AuthFailed, "token_revoked": platforms.AuthFailed,
	"token_expired": platforms.AuthFailed, "account_inactive": platforms.AuthFailed, "team_disabled": platforms.AuthFailed,
	"org_login_required": platforms.AuthFailed,

	"missing_scope": platforms.Unsupported, "no_permission": platforms.Unsupported, "not_allowed_token_type": platforms.Unsupported,
	"file_too_large": platforms.TooLong, "file_not_found": platforms.NotFound, "file_deleted": platforms.NotFound,
	"method_deprecated": platforms.Unsupported, "unknown_method": platforms.Unsupported, "feature_not_enabled": platforms.Unsupported,
	"channel_type_not_supported": platforms.Unsupported, "method_not_supported_for_channel_type": platforms.Unsupported,

	"fatal_error": platforms.Transient, "internal_error": platforms.Transient, "service_unavailable": platforms.Transient,
	"request_timeout": platforms.Transient,
}

// do makes one request that writes in a chat ("" for none). Inside a window that Slack has closed it returns
// RateLimited without a request. Errors are *platforms.SendError.
func (a *Adapter) do(ctx context.Context, method, chat string, request func(context.Context) error) error {
	if err := a.gate.open(method, chat); err != nil {
		return err
	}
	c, callCtx, cancel := wire.NewCall(ctx, 0)
	err := request(callCtx)
	cancel()
	if err == nil {
		return nil
	}
	e := a.s.outcome(c, err)
	switch e.Kind {
	case platforms.RateLimited:
		a.gate.shut(method, chat, e.RetryAfter)
	case platforms.AuthFailed:
		a.doubtToken()
	}
	return e
}

// outcome says what is known of a failed call.
func (s *settings) outcome(c *wire.Call, err error) *platforms.SendError {
	var refused api.SlackErrorResponse
	if errors.As(err, &refused) {
		e := &platforms.SendError{Kind: platforms.BadRequest, Err: explain(refused)}
		if kind, known := refusals[refused.Err]; known {
			e.Kind = kind
		}
		switch e.Kind {
		case platforms.RateLimited:
			e.RetryAfter = max(c.After, time.Second)
		case platforms.Transient:
			e.Certainty = platforms.Unknown // Slack says that a part may have been done
		}
		return e
	}
	e := c.Outcome(s.clean(err))
	switch {
	case c.Status == 0:
	case c.Status < 300:
		e.Err = errors.New("the answer of Slack could not be read")
	case e.Kind == platforms.RateLimited:
		e.Err = errors.New("the rate limit of Slack")
	default:
		e.Err = fmt.Errorf("answer %d of Slack", c.Status)
		if c.Status < 500 && e.Kind != platforms.TooLong {
			e.Kind = platforms.BadRequest // Slack says what it refuses in the answer; this is somebody else's
		}
	}
	return e
}

// refusal is Slack's error code, with what a person can do about it.
type refusal struct {
	code, more string
}

func (r *refusal) Error() string {
	if r.more == "" {
		return r.code
	}
	return r.code + ": " + r.more
}

func explain(r api.SlackErrorResponse) error {
	e := &refusal{code: r.Err}
	switch r.Err {
	case "missing_scope":
		e.more = "add the scope " + r.Needed + " to the app and install it again"
	case "not_in_channel", "channel_not_found":
		e.more = "invite the bot to the channel"
	case "messages_tab_disabled":
		e.more = "switch the Messages tab on (App Home)"
	default:
		if m := r.ResponseMetadata.Messages; len(m) > 0 {
			e.more = cut(strings.Join(m, "; "), 300)
		}
	}
	return e
}

// code returns Slack's error code, "" when err is not a refusal of Slack.
func code(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	return ""
}

// clean takes the secrets out of err: our tokens, and the address of a request, which may be one.
func (a *Adapter) clean(err error) error { return a.s.clean(err) }

func (s *settings) clean(err error, more ...string) error {
	return wire.Redact(err, append(more, s.secrets()...)...)
}

// secrets are those that all accounts of the app share.
func (s *settings) secrets() []string {
	secrets := []string{s.AppToken}
	for _, t := range s.Tokens {
		secrets = append(secrets, t.Token)
	}
	if s.proxy != nil {
		if password, ok := s.proxy.User.Password(); ok {
			secrets = append(secrets, password)
		}
	}
	return secrets
}

// cut shortens text to at most n bytes.
func cut(text string, n int) string { return format.Cut(text, n, platforms.Bytes) }
