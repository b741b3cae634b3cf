package config

import "herald/platforms"

// Display is what people see beside the answers. A nil pointer leaves the choice to the platform's tier; see
// Config.DisplayFor.
type Display struct {
	Language string `yaml:"language" env:"HERALD_LANGUAGE" check:"text" doc:"language of Herald's own texts, as a tag or a name; unknown or unset: English"`
	DisplayTiered
	ToolProgressCommand bool                      `yaml:"tool_progress_command" default:"true" doc:"/verbose may change tool_progress in a chat"`
	ToolGrouping        string                    `yaml:"tool_progress_grouping" default:"accumulate" oneof:"accumulate,separate" doc:"tool calls share one bubble that is edited, or get one each"`
	ShowReasoning       bool                      `yaml:"show_reasoning" default:"false" doc:"show what a reasoning model thought"`
	ReasoningStyle      string                    `yaml:"reasoning_style" default:"code" oneof:"code,blockquote" doc:"form of shown reasoning"`
	LiveStatus          string                    `yaml:"live_status" default:"full" oneof:"full,verb,off" doc:"the sign of life says which tool runs, where the platform shows words: with its argument, without, or not at all"`
	HideWarnings        bool                      `yaml:"suppress_warning_notifications" default:"false" doc:"keep warnings about a slow or stuck turn out of the chat"`
	BusyInputMode       string                    `yaml:"busy_input_mode" default:"interrupt" oneof:"interrupt,queue,steer" doc:"what a message does while the agent works"`
	BusyAck             bool                      `yaml:"busy_ack_enabled" default:"true" doc:"say what happened to such a message"`
	BusySteerAck        bool                      `yaml:"busy_steer_ack_enabled" default:"true" doc:"say it for a steer as well"`
	CleanupProgress     bool                      `yaml:"cleanup_progress" default:"false" doc:"delete progress bubbles after a good answer, where the platform can"`
	BackgroundNews      string                    `yaml:"background_process_notifications" default:"concise" oneof:"concise,all,result,error,off" doc:"what the chat is told about background processes beside the agent's own words: concise: the end in a line, with the last lines of one that failed; result: always with the last lines; all: also lines that are watched for; error: only ends that failed; off: nothing"`
	RuntimeFooter       Footer                    `yaml:"runtime_footer" doc:"a line below each answer"`
	Platforms           map[string]DisplayOptions `yaml:"platforms" keys:"platform" doc:"other values for one platform"`
}

// DisplayTiered are the settings whose default depends on the platform.
type DisplayTiered struct {
	ToolProgress  *string `yaml:"tool_progress" oneof:"off,new,all,verbose,log" doc:"tool calls shown: none, only when the tool changes, all, with full arguments, or only in logs/tool_calls.log; unset: by platform"`
	PreviewLength *int    `yaml:"tool_preview_length" min:"0" max:"4000" doc:"characters of an argument that are shown; 0: all; unset: by platform"`
	Interim       *bool   `yaml:"interim_assistant_messages" doc:"show what the model says between tool calls; unset: by platform"`
	LongRunning   *bool   `yaml:"long_running_notifications" doc:"a long turn says that it still works; unset: by platform"`
	BusyAckDetail *bool   `yaml:"busy_ack_detail" doc:"busy notices name minutes, step and tool; unset: by platform"`
	MemoryNotices *bool   `yaml:"memory_notifications" doc:"say that something was remembered; unset: by platform"`
	Streaming     *bool   `yaml:"streaming" doc:"show the growing answer; unset: by platform and streaming.enabled"`
}

// DisplayOptions are the settings that one platform can have for itself. nil takes the general value.
type DisplayOptions struct {
	DisplayTiered
	ToolGrouping    *string `yaml:"tool_progress_grouping" oneof:"accumulate,separate" doc:"as display.tool_progress_grouping"`
	ShowReasoning   *bool   `yaml:"show_reasoning" doc:"as display.show_reasoning"`
	ReasoningStyle  *string `yaml:"reasoning_style" oneof:"code,blockquote" doc:"as display.reasoning_style"`
	LiveStatus      *string `yaml:"live_status" oneof:"full,verb,off" doc:"as display.live_status"`
	BusyInputMode   *string `yaml:"busy_input_mode" oneof:"interrupt,queue,steer" doc:"as display.busy_input_mode"`
	BusyAck         *bool   `yaml:"busy_ack_enabled" doc:"as display.busy_ack_enabled"`
	BusySteerAck    *bool   `yaml:"busy_steer_ack_enabled" doc:"as display.busy_steer_ack_enabled"`
	CleanupProgress *bool   `yaml:"cleanup_progress" doc:"as display.cleanup_progress"`
}

// Footer is the line below each answer.
type Footer struct {
	Enabled bool     `yaml:"enabled" default:"false" doc:"show it"`
	Fields  []string `yaml:"fields" default:"model,context_pct" oneof:"model,context_pct,latency,cwd" doc:"what it shows, in this order"`
}

// DisplaySettings is what holds for one platform after all is resolved.
type DisplaySettings struct {
	ToolProgress   string // "off", "new", "all", "verbose" or "log"
	ToolGrouping   string // "accumulate" or "separate"
	PreviewLength  int    // characters of an argument, 0: all
	Interim        bool
	LongRunning    bool
	LiveStatus     string // "full", "verb" or "off"
	BusyInputMode  string // "interrupt", "queue" or "steer"
	BusyAck        bool
	BusyAckDetail  bool
	BusySteerAck   bool
	MemoryNotices  bool
	Streaming      bool // never true for a platform that cannot edit; callers check Traits.Edit as well
	ShowReasoning  bool
	ReasoningStyle string
	Cleanup        bool
}

// tierDefault is what a tier shows where the operator has set nothing.
type tierDefault struct {
	progress                                 string
	preview                                  int
	interim, longRunning, busyDetail, stream bool
}

func tierDefaults(t platforms.Tier) tierDefault {
	switch t {
	case platforms.TierHigh:
		return tierDefault{"all", 40, true, true, true, true}
	case platforms.TierHighQuiet:
		return tierDefault{"off", 40, true, true, false, true}
	case platforms.TierMedium:
		return tierDefault{"new", 0, true, true, true, true}
	case platforms.TierMediumQuiet:
		return tierDefault{"off", 0, true, false, false, true}
	}
	return tierDefault{"off", 0, false, false, false, false} // low and minimal: no edits
}

// DisplayFor resolves the settings of one platform: its own block in display.platforms, then display, then
// the default of its tier, then the general default. So a value at display replaces the quiet default of
// every platform. An unknown tier counts as low.
func (c *Config) DisplayFor(p platforms.Name, tier platforms.Tier) DisplaySettings {
	d, own, t := c.Display, c.Display.Platforms[string(p)], tierDefaults(tier)
	return DisplaySettings{
		ToolProgress:   first(t.progress, own.ToolProgress, d.ToolProgress),
		ToolGrouping:   first(d.ToolGrouping, own.ToolGrouping),
		PreviewLength:  first(t.preview, own.PreviewLength, d.PreviewLength),
		Interim:        first(t.interim, own.Interim, d.Interim),
		LongRunning:    first(t.longRunning, own.LongRunning, d.LongRunning),
		LiveStatus:     first(d.LiveStatus, own.LiveStatus),
		BusyInputMode:  first(d.BusyInputMode, own.BusyInputMode),
		BusyAck:        first(d.BusyAck, own.BusyAck),
		BusyAckDetail:  first(t.busyDetail, own.BusyAckDetail, d.BusyAckDetail),
		BusySteerAck:   first(d.BusySteerAck, own.BusySteerAck),
		MemoryNotices:  first(!c.Platforms.Rules().Of(p).NoMemoryNotices, own.MemoryNotices, d.MemoryNotices),
		Streaming:      first(t.stream && c.Streaming.Enabled, own.Streaming, d.Streaming),
		ShowReasoning:  first(d.ShowReasoning, own.ShowReasoning),
		ReasoningStyle: first(d.ReasoningStyle, own.ReasoningStyle),
		Cleanup:        first(d.CleanupProgress, own.CleanupProgress),
	}
}

// first returns the first value that is set, else the fallback.
func first[T any](fallback T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return fallback
}
