package discord

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

// The limits of components (https://discord.com/developers/docs/components/reference).
const (
	rowsLimit    = 5
	buttonsLimit = 5  // of a row
	optionsLimit = 25 // of a select menu
	labelLimit   = 80 // code points of a button's label; a menu takes 100
	dataLimit    = 100
	// selectPrefix begins the custom id of our select menus; the choice is in their value.
	selectPrefix = "select:"
)

// componentsOf returns rows of choices as Discord shows them: as buttons, at most five rows of five, or else as
// menus of 25 options. nil for no choices.
func componentsOf(rows [][]platforms.Button) ([]discordgo.MessageComponent, error) {
	var all []platforms.Button
	fits, filled := true, 0
	seen := map[string]bool{}
	for _, row := range rows {
		for _, b := range row {
			switch {
			case b.Label == "":
				return nil, badButton(errors.New("a button has no label"))
			case b.Data == "" || len(b.Data) > dataLimit:
				return nil, badButton(fmt.Errorf("button %q has %d bytes of data: want 1 to %d", b.Label, len(b.Data), dataLimit))
			case seen[b.Data]:
				return nil, badButton(fmt.Errorf("two buttons have the data %q", b.Data))
			}
			seen[b.Data] = true
		}
		if len(row) > 0 {
			filled++
		}
		fits = fits && len(row) <= buttonsLimit
		all = append(all, row...)
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case fits && filled <= rowsLimit:
		return buttonRows(rows), nil
	case len(all) <= rowsLimit*buttonsLimit:
		return buttonRows(chunks(all, buttonsLimit)), nil
	case len(all) <= rowsLimit*optionsLimit:
		return menus(all), nil
	}
	return nil, badButton(fmt.Errorf("%d choices, Discord shows at most %d", len(all), rowsLimit*optionsLimit))
}

func badButton(err error) error {
	return &platforms.SendError{Kind: platforms.BadRequest, Err: err}
}

func chunks(all []platforms.Button, size int) [][]platforms.Button {
	var out [][]platforms.Button
	for len(all) > size {
		out, all = append(out, all[:size]), all[size:]
	}
	return append(out, all)
}

func buttonRows(rows [][]platforms.Button) []discordgo.MessageComponent {
	var out []discordgo.MessageComponent
	for _, row := range rows {
		if len(row) == 0 {
			continue
		}
		line := discordgo.ActionsRow{}
		for _, b := range row {
			line.Components = append(line.Components, discordgo.Button{Label: cut(b.Label, labelLimit), Style: styleOf(b.Style), CustomID: b.Data})
		}
		out = append(out, line)
	}
	return out
}

func styleOf(style string) discordgo.ButtonStyle {
	switch style {
	case "primary":
		return discordgo.PrimaryButton
	case "danger":
		return discordgo.DangerButton
	}
	return discordgo.SecondaryButton
}

func menus(all []platforms.Button) []discordgo.MessageComponent {
	var out []discordgo.MessageComponent
	for i, part := range chunks(all, optionsLimit) {
		first := i*optionsLimit + 1
		menu := discordgo.SelectMenu{
			MenuType: discordgo.StringSelectMenu, CustomID: selectPrefix + strconv.Itoa(i),
			Placeholder: fmt.Sprintf("%d – %d", first, first+len(part)-1),
		}
		for _, b := range part {
			menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: cut(b.Label, 100), Value: b.Data})
		}
		out = append(out, discordgo.ActionsRow{Components: []discordgo.MessageComponent{menu}})
	}
	return out
}
