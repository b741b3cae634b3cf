package gateway

import (
	"herald/cron"
	"herald/gateway/jobs"
	"herald/gateway/jobs/view"
)

// Jobs are the scheduled jobs of the profile, Book, JobViews and JobRequests what reads, changes and runs them.
func (g *Gateway) Jobs() *jobs.Jobs            { return g.scheduled.jobs }
func (g *Gateway) Book() *cron.Book            { return g.scheduled.book }
func (g *Gateway) JobViews() view.Reader       { return g.scheduled.views }
func (g *Gateway) JobRequests() *cron.Requests { return g.scheduled.requests }
