package api

import "go-crontab/job"

// httpFields reads the request of an HTTP job.
func httpFields(f *fields, to **job.HTTP) {
	f.inner("http", func(f *fields) {
		h := &job.HTTP{}
		*to = h

		f.text("method", &h.Method)
		f.text("url", &h.URL)
		f.textMap("headers", &h.Headers)
		f.text("body", &h.Body)
		f.texts("expect", &h.Expect)
		f.count("body_limit", &h.BodyLimit, job.MaxBodyLimit)
		f.integer("redirects", &h.Redirects)

		f.inner("tls", func(f *fields) {
			h.TLS = &job.HTTPTLS{}
			var skip *bool
			f.boolean("skip_verify", &skip)
			h.TLS.SkipVerify = skip != nil && *skip
			f.text("ca", &h.TLS.CA)
			f.text("server_name", &h.TLS.ServerName)
			f.text("client_cert", &h.TLS.ClientCert)
			f.text("client_key", (*string)(&h.TLS.ClientKey))
		})

		f.inner("sign", func(f *fields) {
			h.Sign = &job.HTTPSign{}
			f.text("secret", (*string)(&h.Sign.Secret))
		})
	})
}
