package command

import (
	"context"
	"slices"
	"strings"

	"herald/gateway/model"
	"herald/gateway/router"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
)

// modelCommands choose how answers are made and shown.
func modelCommands() []Spec {
	return []Spec{
		{Name: "model", Args: "[name | default]", Busy: router.Reject, run: runModel, Summary: "show or choose this session's model"},
		{Name: "verbose", Args: "[off | new | all | verbose]", Busy: router.Dispatch, run: runVerbose, Summary: "which tool calls are shown while I work"},
	}
}

func runModel(ctx context.Context, q *Request) error {
	name := strings.TrimSpace(q.Args)
	var canonical string
	var info model.Info
	var unknown error
	if name != "" && name != "default" && name != "reset" {
		canonical, info, unknown = q.Models.Resolve(name) // before the transaction: it may ask a server
	}
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		_, o, err := q.opened(tx)
		if err != nil {
			return "", err
		}
		switch name {
		case "":
			current, configured := q.Models.Current(o.Model).String(), q.Models.Current("").String()
			text := q.t("command.model.show", locales.Str("model", format.Code(current)))
			if current != configured {
				text = q.t("command.model.override", locales.Str("model", format.Code(current)), locales.Str("default", format.Code(configured)))
			}
			text += "\n" + q.t("command.model.title")
			for _, name := range q.Models.Known() {
				text += "\n- " + format.Code(name)
			}
			return text + "\n\n" + q.t("command.model.hint"), nil
		case "default", "reset":
			o.Model = ""
			return q.t("command.model.reset", locales.Str("model", format.Code(q.Models.Current("").String()))), tx.SetOptions(q.Control.Key(), o)
		}
		if unknown != nil {
			return q.t("command.model.unknown", locales.Str("name", format.EscapeMarkdown(name))) + " (" + format.EscapeMarkdown(unknown.Error()) + ")", nil
		}
		o.Model = canonical
		return q.t("command.model.set", locales.Str("model", format.Code(info.String()))), tx.SetOptions(q.Control.Key(), o)
	})
}

// progressModes in the order in which /verbose without an argument goes through them.
var progressModes = []string{"off", "new", "all", "verbose"}

func runVerbose(ctx context.Context, q *Request) error {
	arg := strings.ToLower(strings.TrimSpace(q.Args))
	return q.commit(ctx, func(tx sessions.Tx) (string, error) {
		_, o, err := q.opened(tx)
		if err != nil {
			return "", err
		}
		now := o.Progress
		if now == "" {
			now = q.Progress(q.Item.Event.Address)
		}
		switch {
		case arg == "":
			o.Progress = progressModes[(slices.Index(progressModes, now)+1)%len(progressModes)]
		case slices.Contains(progressModes, arg):
			o.Progress = arg
		default:
			return q.badValue(arg), nil
		}
		return q.t("command.verbose.set", locales.Str("mode", q.t("command.verbose.mode."+o.Progress))), tx.SetOptions(q.Control.Key(), o)
	})
}
