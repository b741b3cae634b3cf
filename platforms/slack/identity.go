package slack

import (
	"context"
	"errors"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

// identity is who the bot is, as auth.test tells.
type identity struct {
	user, bot        string // U… and B…
	team, enterprise string
}

// identify asks auth.test until it answers or ctx ends. A refused token is a *platforms.StartError.
func (a *Adapter) identify(ctx context.Context) error {
	wait := a.s.newBackoff()
	for ctx.Err() == nil {
		err := a.ask(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		e := platforms.AsSendError(err)
		if refused := a.refusedToken(e); refused != nil {
			return refused
		}
		a.health.Set("reconnecting", e.Err.Error())
		a.s.Log.Warn().Str("account", string(a.account.ID)).Err(err).Msg("Slack can't be asked who the bot is, trying again")
		_ = wait.Wait(ctx, a.s.Clock, e.RetryAfter)
	}
	return nil
}

// recheck asks whether the token still works, after something said that it may not.
func (a *Adapter) recheck(ctx context.Context) error {
	err := a.ask(ctx)
	if err == nil {
		return nil
	}
	return a.refusedToken(platforms.AsSendError(err))
}

func (a *Adapter) ask(ctx context.Context) error {
	c, callCtx, cancel := wire.NewCall(ctx, a.s.ConnectTimeout)
	defer cancel()
	who, err := a.api.AuthTestContext(callCtx)
	if err != nil {
		return a.s.outcome(c, err)
	}
	if who.UserID == "" || who.TeamID == "" {
		return platforms.Failure(platforms.Transient, "auth.test names no user or workspace")
	}
	a.me.Store(&identity{user: who.UserID, bot: who.BotID, team: who.TeamID, enterprise: who.EnterpriseID})
	if a.team != "" && a.team != who.TeamID {
		a.s.Log.Warn().Str("account", string(a.account.ID)).Str("named", a.team).Str("is", who.TeamID).Msg("a bot token belongs to another workspace than slack_tokens.json says")
	}
	return nil
}

// refusedToken returns why the account can't start, nil when trying again may help.
func (a *Adapter) refusedToken(e *platforms.SendError) error {
	if e.Kind != platforms.AuthFailed && code(e) != "not_allowed_token_type" {
		return nil
	}
	a.s.Metrics.Polled("auth")
	err := setting("bot_token", errors.New("was refused by Slack ("+e.Err.Error()+")"), "")
	err.Account = a.account
	switch code(e) {
	case "token_revoked", "account_inactive":
		err.Hint = "the app was uninstalled or its token revoked: install it again and set SLACK_BOT_TOKEN to the new token"
	case "token_expired":
		err.Hint = "the app rotates its tokens, which is not supported: switch token rotation off and install it again"
	default:
		err.Hint = "set SLACK_BOT_TOKEN to the Bot User OAuth Token (xoxb-…) of the app's page Install App"
	}
	return err
}

// self returns who the bot is; the zero identity before auth.test has answered.
func (a *Adapter) self() identity {
	if me := a.me.Load(); me != nil {
		return *me
	}
	return identity{}
}

func (s *settings) newBackoff() *wire.Backoff { return wire.NewBackoff(s.BackoffMin, s.BackoffMax) }

// appClient makes the requests of the app-level token.
func (s *settings) appClient(c *wire.Client) *api.Client {
	return api.New("", api.OptionAppLevelToken(s.AppToken), api.OptionAPIURL(s.APIURL), api.OptionHTTPClient(c))
}

// lookup bounds a question that an event waits for.
func (a *Adapter) lookup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(a.s.Lookup, 5*time.Second))
}
