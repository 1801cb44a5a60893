package main

import . "go-crontab/tools/outside/client"

// alerts uses the operations about alerts.
func (d *driver) alerts() {
	ok(d.PutAlertChannelWithResponse(d.ctx, "outside", nil,
		AlertChannelInput{Type: "webhook", Url: to("http://127.0.0.1:1/alerts")}))
	must(ok(d.GetAlertChannelWithResponse(d.ctx, "outside")).JSON200.Name == "outside", "a channel has its name")
	must(len(ok(d.ListAlertChannelsWithResponse(d.ctx, nil)).JSON200.Items) == 1, "channels are listed")
	must(!ok(d.TestAlertChannelWithResponse(d.ctx, "outside", nil, NothingInput{})).JSON200.Sent,
		"the node's own machine is not called")
	ok(d.PutAlertRuleWithResponse(d.ctx, "outside", nil,
		AlertRuleInput{On: []AlertEvent{"failed", "recovered"}, Channels: []string{"outside"}}))
	must(!ok(d.TestUnsavedAlertChannelWithResponse(d.ctx, nil,
		AlertChannelInput{Type: "webhook", Url: to("http://127.0.0.1:1/alerts")})).JSON200.Sent,
		"the node's own machine is not called")
	must(ok(d.TestUnsavedAlertRuleWithResponse(d.ctx, nil, AlertRuleInput{On: []AlertEvent{"failed"},
		Channels: []string{"outside"}})).JSON200.Channels[0].Channel == "outside", "a rule is tested at its channels")
	refused(422)(d.PutAlertRuleWithResponse(d.ctx, "bad", nil,
		AlertRuleInput{On: []AlertEvent{"late_finish"}, Channels: []string{"outside"}}))
	must(ok(d.GetAlertRuleWithResponse(d.ctx, "outside")).JSON200.Channels[0] == "outside", "a rule has its channels")
	must(len(ok(d.ListAlertRulesWithResponse(d.ctx, nil)).JSON200.Items) == 1, "rules are listed")
	refused(409)(d.DeleteAlertChannelWithResponse(d.ctx, "outside"))

	silence := ok(d.AddAlertSilenceWithResponse(d.ctx, nil,
		SilenceInput{App: to("outside"), Until: "2h", Reason: "nobody looks"})).JSON201
	must(!ok(d.GetAlertSilenceWithResponse(d.ctx, silence.Id)).JSON200.Over, "a silence has begun")
	must(len(ok(d.ListAlertSilencesWithResponse(d.ctx, nil)).JSON200.Items) == 1, "silences are listed")
	ok(d.EndAlertSilenceWithResponse(d.ctx, silence.Id))

	refused(404)(d.GetAlertWithResponse(d.ctx, "999"))
	ok(d.ListAlertsWithResponse(d.ctx, nil))
	must(len(ok(d.ListDeliveriesWithResponse(d.ctx, nil)).JSON200.Items) == 2, "tests of saved channels are written down")
	ok(d.GetAlertSummaryWithResponse(d.ctx))
	ok(d.DeleteAlertRuleWithResponse(d.ctx, "outside"))
	ok(d.DeleteAlertChannelWithResponse(d.ctx, "outside"))
}
