package api

import (
	"net/http"
	"time"
)

// Limits of the window of job statistics.
const (
	minWindow = time.Minute
	maxWindow = 31 * 24 * time.Hour
)

const (
	withLastRuns    = "last_runs"
	maxSlots        = 1000
	defaultSlots    = 200
	maxParts        = 400
	defaultParts    = 96
	maxSlotJobs     = 50
	defaultSlotJobs = 20
)

func (s *Server) jobStats(http.ResponseWriter, *http.Request) error         { return unavailable.problem("Not yet.") }
func (s *Server) counts(http.ResponseWriter, *http.Request) error           { return unavailable.problem("Not yet.") }
func (s *Server) slots(http.ResponseWriter, *http.Request) error            { return unavailable.problem("Not yet.") }
func (s *Server) bulkRerun(http.ResponseWriter, *http.Request) error        { return unavailable.problem("Not yet.") }
func (s *Server) listBackfillDues(http.ResponseWriter, *http.Request) error { return unavailable.problem("Not yet.") }
