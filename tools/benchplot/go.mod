module go-crontab/tools/benchplot

go 1.26.0

require github.com/wcharczuk/go-chart/v2 v2.1.2

require (
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	golang.org/x/image v0.47.0 // indirect
)
