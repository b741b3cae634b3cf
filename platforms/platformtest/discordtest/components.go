package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// component is what the fake reads of one.
type component struct {
	Type        int         `json:"type"`
	Components  []component `json:"components"`
	Accessory   *component  `json:"accessory"`
	Component   *component  `json:"component"`
	CustomID    *string     `json:"custom_id"`
	Label       string      `json:"label"`
	URL         string      `json:"url"`
	Style       int         `json:"style"`
	Disabled    bool        `json:"disabled"`
	Placeholder string      `json:"placeholder"`
	Emoji       *struct {
		Name string `json:"name"`
	} `json:"emoji"`
	Options []struct {
		Label       string `json:"label"`
		Value       string `json:"value"`
		Description string `json:"description"`
	} `json:"options"`
	Min *int `json:"min_values"`
	Max *int `json:"max_values"`
}

// Component types.
const (
	typeRow    = 1
	typeButton = 2
	typeSelect = 3
)

func (c component) isSelect() bool { return c.Type == typeSelect || c.Type >= 5 && c.Type <= 8 }

// checkComponents validates the components of a message and returns them, raw and as people see them. nil is none.
func checkComponents(f *form, raw json.RawMessage) (json.RawMessage, [][]Button) {
	var rows []component
	if isNull(raw) {
		return nil, nil
	}
	if json.Unmarshal(raw, &rows) != nil {
		f.add("components", "BASE_TYPE_BAD_TYPE", "Only iterables may be used in a ListType.")
		return nil, nil
	}
	if len(rows) == 0 {
		return nil, nil
	}
	if len(rows) > 5 {
		f.add("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	seen := map[string]bool{}
	var out [][]Button
	for i, row := range rows {
		at := fmt.Sprintf("components.%d", i)
		if row.Type != typeRow {
			f.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
			continue
		}
		if len(row.Components) == 0 || len(row.Components) > 5 {
			f.add(at+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		if len(row.Components) > 1 && slices.ContainsFunc(row.Components, component.isSelect) {
			f.add(at, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
		}
		var buttons []Button
		for j, c := range row.Components {
			checkComponent(f, fmt.Sprintf("%s.components.%d", at, j), c, seen)
			buttons = append(buttons, c.shown())
		}
		out = append(out, buttons)
	}
	return slices.Clone(raw), out
}

func (c component) shown() Button {
	b := Button{Label: c.Label, URL: c.URL, Style: c.Style, Disabled: c.Disabled}
	if c.CustomID != nil {
		b.Data = *c.CustomID
	}
	if b.Label == "" && c.Emoji != nil {
		b.Label = c.Emoji.Name
	}
	if c.isSelect() {
		b.Label = c.Placeholder
	}
	for _, o := range c.Options {
		b.Options = append(b.Options, Choice{o.Label, o.Value})
	}
	return b
}

// checkComponent validates a button or select.
func checkComponent(f *form, at string, c component, seen map[string]bool) {
	long := func(path, s string, most int) {
		if utf8.RuneCountInString(s) > most {
			f.add(at+path, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", most))
		}
	}
	link := c.Type == typeButton && (c.Style == 5 || c.Style == 6)
	switch {
	case c.Type == typeButton && (c.Style < 1 || c.Style > 6):
		f.add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case c.Type == typeButton && c.Label == "" && c.Emoji == nil && c.Style != 6:
		f.add(at, "BUTTON_COMPONENT_INVALID_LABEL", "A button must have a label or an emoji")
	case c.Style == 5 && c.URL == "":
		f.add(at+".url", "BASE_TYPE_REQUIRED", "This field is required")
	case link && c.CustomID != nil:
		f.add(at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "A custom id and url cannot both be specified")
	case c.Type != typeButton && !c.isSelect():
		f.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2, 3, 5, 6, 7, 8).")
	}
	long(".label", c.Label, 80)
	long(".placeholder", c.Placeholder, 150)
	if !link && c.CustomID == nil {
		f.add(at+".custom_id", "BASE_TYPE_REQUIRED", "This field is required")
	}
	if c.CustomID != nil {
		long(".custom_id", *c.CustomID, 100)
		if *c.CustomID == "" {
			f.add(at+".custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		}
		if seen[*c.CustomID] {
			f.add(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
		}
		seen[*c.CustomID] = true
	}
	if c.Type != typeSelect {
		return
	}
	if len(c.Options) == 0 || len(c.Options) > 25 {
		f.add(at+".options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length.")
	}
	values := map[string]bool{}
	for i, o := range c.Options {
		long(fmt.Sprintf(".options.%d.label", i), o.Label, 100)
		long(fmt.Sprintf(".options.%d.value", i), o.Value, 100)
		long(fmt.Sprintf(".options.%d.description", i), o.Description, 100)
		if values[o.Value] {
			f.add(fmt.Sprintf("%s.options.%d.value", at, i), "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
		}
		values[o.Value] = true
	}
}
