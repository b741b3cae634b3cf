package command

import (
	"context"
	"strings"

	"herald/gateway/access"
	"herald/gateway/router"
	"herald/sessions"
)

// placeCommands are about the chat itself.
func placeCommands() []Spec {
	return []Spec{
		{Name: "sethome", Aliases: []string{"set-home"}, Args: "[off]", Busy: router.Reject, run: runSetHome, Summary: "send notices that belong to no conversation to this chat"},
	}
}

// runSetHome is for admins: where notices of all conversations go is not a matter of one chat.
func runSetHome(ctx context.Context, q *Request) error {
	arg := strings.ToLower(strings.TrimSpace(q.Args))
	e := q.Item.Event
	switch {
	case q.Tier(e) != access.TierAdmin:
		return q.reply(ctx, q.t("command.sethome.admins"))
	case arg != "" && arg != "off":
		return q.reply(ctx, q.badValue(q.Args))
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		if err := q.SetHome(tx, e, arg == "off"); err != nil {
			return "", err
		}
		switch {
		case arg == "off":
			return q.t("command.sethome.off"), nil
		case e.Address.Thread != "":
			return q.t("command.sethome.thread"), nil
		}
		return q.t("command.sethome.done"), nil
	})
}
