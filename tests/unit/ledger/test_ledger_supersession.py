"""Which statement replaces which: only one about the same thing, and never one that has no key.

The sentences are our own; none is of a benchmark.
"""

from __future__ import annotations

import pytest
from talks import agent, epoch, rows, said, user

from clew.compaction.ledger import fold

CHANGES = [
    ("The max upload size is 25 MB.", "The max upload size is 50 MB now."),
    ("Our Redis timeout is 30 seconds.", "We raised the Redis timeout to 45 seconds."),
    ("Set the retry limit to 3.", "Bump the retry limit to 5."),
    (
        "The API key for staging is sk-test-118.",
        "The staging API key has been rotated, it's sk-test-942 from today.",
    ),
    (
        "Meeting with the auditors is on 2026-03-04.",
        "The auditors' meeting has been moved to 2026-03-11.",
    ),
    ("The demo is on Tuesday.", "Demo slipped to Thursday."),
    ("Marta Kowalska owns the billing service.", "Billing service is now owned by Tom Becker."),
    ("Please answer in French.", "Actually, answer in Spanish from now on."),
    ("Indent size is 4.", "Indent size should be 2 from here on."),
    ("Pool size is 8.", "Increase the pool size to 16."),
    (
        "We deploy from branch release/2.4, that's the working branch.",
        "Working branch is now release/2.5.",
    ),
    ("The default page size is 20.", "Change the default page size to 50."),
    (
        "Our staging URL is https://stage.acme.dev/v1.",
        "Staging URL changed to https://stage2.acme.dev/v1.",
    ),
    ("The project is called Falcon.", "We renamed the project to Osprey."),
    ("Log level is INFO.", "Set log level to DEBUG."),
    ("The ci port is 8090.", "CI port moved to 8191."),
    (
        "We'll use MongoDB for the event store.",
        "We decided against that: use Postgres instead of MongoDB for the event store.",
    ),
    ("We picked Celery for background jobs.", "Replace Celery with Dramatiq."),
    ("Let's go with webpack.", "Switch from webpack to vite."),
    ("The budget for ads is $2,000.", "Ads budget is cut to $1,500."),
    ("The marketing budget is €10k.", "We increased the marketing budget to €14k."),
    ("Show temperatures in celsius.", "Use fahrenheit for temperatures from now on."),
    ("Keep your answers short.", "I'd prefer detailed answers from now on."),
    ("The target Python version is 3.10.", "Target Python version is now 3.12."),
    ("The release deadline is June 12.", "The release deadline has been extended to June 30."),
    (
        "Rate limit is 100 requests per minute.",
        "The rate limit should be 250 requests per minute now.",
    ),
    ("The cache TTL is set to 10 minutes.", "Cache TTL: 5 minutes."),
    ("Primary contact for legal is Anna Bauer.", "Primary contact for legal is now Ivo Horvat."),
    ("Write code examples in Java.", "Write code examples in Kotlin instead."),
    ("The support mailbox is help@acme.io.", "The support mailbox changed, it is care@acme.io."),
    ("Timestamps must be in CET.", "Timestamps should be in UTC from now on."),
    ("The backup runs at 02:00.", "Backup now runs at 04:30."),
    ("The model name is gpt-small-1.", "The model name is gpt-small-2 now."),
    ("Our table prefix is app_.", "Set the table prefix to crm_."),
    ("The batch size is 64.", "Let's lower the batch size to 32."),
    (
        "The minimum password length is 8 characters.",
        "Minimum password length is now 12 characters.",
    ),
    ("Next step: write the migration.", "Next step: review the migration."),
    ("The current sprint goal is login.", "The current sprint goal is checkout."),
    ("The port of the proxy is 3128.", "The port of the proxy is 3129 now."),
    ("Only Dana Scully may approve refunds.", "Refunds are approved by Fox Mulder from now on."),
    ("Our SMTP host is mail1.acme.net.", "SMTP host is mail7.acme.net as of today."),
    (
        "The invoice number prefix is INV-2025.",
        "Please change the invoice number prefix to INV-2026.",
    ),
    ("Max concurrent jobs: 4", "Max concurrent jobs should go up to 6."),
    (
        "Customer churn report is due on April 3.",
        "The customer churn report is now due on April 10.",
    ),
    ("Lena Vogel is the product lead.", "Product lead is Omar Haddad now."),
    (
        "Our repository lives at https://git.example.org/a/b.",
        "The repository moved to https://git.example.org/c/d.",
    ),
    (
        "The password for the demo tenant is Blue-9981.",
        "I changed the password for the demo tenant to Green-4410.",
    ),
    ("Cap cloud spend at $3,000.", "Raise the cloud spend cap to $3,500."),
    (
        "Keep the docker image below 400 MB.",
        "Docker image may now be up to 500 MB: keep the docker image below 500 MB.",
    ),
    ("The session cookie is named sid_old.", "The session cookie is now named sid_new."),
    ("The currency is eur.", "The currency should be CHF from now on."),
    ("Deployment window: Tuesday", "Deployment window: Wednesday"),
    ("Release branch is release/7.1.", "The release branch is now release/7.2."),
    ("We chose RabbitMQ as the broker.", "We are switching from RabbitMQ to NATS."),
    ("We will use Jest for the frontend tests.", "Use Vitest instead of Jest."),
    ("Our error budget is 0.1%.", "The error budget is now 0.5%."),
    ("Write the docs in English.", "Write the docs in German from now on."),
    ("The tax rate is 19%.", "The tax rate changed from 19% to 21%."),
    ("Set the worker count to 12.", "Set the worker count to 24."),
    ("The chat model is mini-3.", "Switch the chat model to mini-4."),
    ("The S3 bucket is called acme-raw.", "We renamed the S3 bucket to acme-landing."),
    ("The nightly job starts at 01:15.", "The nightly job now starts at 03:45."),
    ("The headline font size is 24px.", "Headline font size goes to 28px."),
    ("The floor is 3.", "The floor is 5 now."),
    ("Give me distances in miles: use miles.", "Use kilometers instead."),
    ("The base image is python:3.11-slim.", "Base image is now python:3.13-slim."),
    ("The alert threshold is 80 percent.", "Lower the alert threshold to 70 percent."),
    ("The Kafka topic is orders.v1.", "The Kafka topic is orders.v2 now."),
    ("Answer me formally, in a formal tone.", "Please keep your replies casual."),
    (
        "The first workshop date is 2026-09-01.",
        "The first workshop date has slipped to 2026-09-15.",
    ),
    ("Priya Nair is on call this weekend.", "Jonas Weber is now on call this weekend."),
    ("My timezone is Europe/Berlin.", "My timezone is America/New_York now."),
    (
        "Region for the object store: eu-central-1.",
        "We moved the object store to region eu-west-3.",
    ),
    ("The customer id is C-4471.", "Correction: the customer id is C-4417."),
    ("Sprint length is two weeks.", "Sprint length is three weeks from now on."),
    ("Token lifetime is 15 minutes.", "Token lifetime is 30 minutes now."),
    ("The contract value is $120,000.", "The contract value was corrected to $125,000."),
    ("The feature flag is called checkout_v2.", "The feature flag is now called checkout_v3."),
    ("We ship on March 9.", "We now ship on March 16."),
    (
        "The heartbeat interval is 5 seconds.",
        "The heartbeat interval has been increased to 15 seconds.",
    ),
    ("Our Sentry project is called web-prod.", "The Sentry project is now called web-live."),
    ("The transfer limit is $10,000.", "The transfer limit is now $8,000."),
    ("The design review is on 2026-07-02.", "The design review has been postponed to 2026-07-09."),
    ("Explain everything in Italian.", "Please switch to Portuguese: reply in Portuguese."),
    ("Use imperial units.", "Use metric units from now on."),
    ("The vendor contact is Sara Lind.", "Vendor contact: Nils Berg."),
    ("The license key is QX-7712.", "New license key is QX-9001."),
    ("Keep answers brief.", "I want longer answers now: keep answers detailed."),
    ("Working branch is feat/login-22.", "We moved to branch feat/login-23."),
    ("The sampling rate is 0.1.", "Reduce the sampling rate to 0.05."),
    (
        "The compression level is 6.",
        "Compression level 9 is better, so set the compression level to 9.",
    ),
    ("The queue is named jobs-low.", "The queue was renamed to jobs-slow."),
    ("We'll go with Terraform for infra.", "Use Pulumi instead of Terraform."),
    ("We use Poetry for packaging.", "We migrated from Poetry to uv."),
    ("The quota per user is 50 files.", "Quota per user is 80 files now."),
    ("The maximum age is 30 days.", "The maximum age is 45 days from now on."),
    ("Refresh interval is 5 minutes.", "Refresh interval should be 2 minutes."),
    ("Ship date: 2026-10-01", "Ship date: 2026-10-08"),
    ("The owner of the ticket is Eva Roth.", "Ticket is now owned by Paul Kern."),
    ("The hotel budget is $180.", "Hotel budget goes up to $220."),
    (
        "Base URL for the sandbox: https://sbx.acme.io",
        "The sandbox base URL is now https://sbx2.acme.io",
    ),
    ("The theme is dark.", "Set the theme to light."),
    ("The default shell is bash.", "Change the default shell to zsh."),
    ("Temperature for sampling is 0.7.", "Lower the temperature for sampling to 0.2."),
    ("The lunch order is due at 11:30.", "The lunch order is now due at 11:45."),
    ("Please write examples in Go.", "Please write examples in Rust instead."),
    (
        "The reviewer for the API is Kim Lee.",
        "Kim is out, so the reviewer for the API is now Ana Gil.",
    ),
    ("The grace period is 14 days.", "The grace period is now 21 days."),
    ("Our warehouse is in region eu-north-1.", "The warehouse has moved to region eu-south-2."),
    ("Rina Patel leads the migration.", "The migration is now led by Jo Brandt."),
    ("Cluster name: orion-3", "The cluster name is orion-4 now."),
    ("The deposit is $900.", "The deposit went up to $1,050."),
    ("Kick-off is on 2026-08-03.", "Kick-off has been pushed to 2026-08-10."),
    ("Talk to me in Polish.", "Please talk to me in English from now on."),
    ("The retention period is 90 days.", "Set the retention period to 120 days."),
    ("Staging runs on port 8801.", "Staging now runs on port 8802."),
    ("We picked Sass for the stylesheets.", "Drop Sass, we use plain CSS."),
    ("Max line length is 88.", "Change max line length to 100."),
    ("The VPN gateway is vpn1.acme.net.", "The VPN gateway changed to vpn2.acme.net."),
    ("Support starts at 09:00.", "Support now starts at 08:00."),
    ("The reference order is ORD-5512.", "The reference order should be ORD-5521, I mistyped."),
    ("Precision is 2.", "Precision is 3 from now on."),
    ("The coupon code is SAVE-10.", "The coupon code is SAVE-25 now."),
    ("The workshop costs 300 euros.", "The workshop now costs 350 euros."),
    ("The deploy key is dk-4471.", "Deploy key rotated; it is dk-9920 now."),
    ("Keep your replies formal.", "You can keep your replies casual from now on."),
    ("The package is called tinyq.", "We renamed the package to microq."),
    ("Write the snippets in Ruby.", "Snippets in Elixir from now on, please."),
    ("The image quality is 80.", "Image quality should be 92 now."),
    ("The working branch is feat/a-1.", "Switched to branch feat/b-2."),
    ("The exchange rate is 1.08.", "Use 1.11 as the exchange rate now."),
    ("Our fiscal year starts on July 1.", "The fiscal year now starts on January 1."),
    ("Concurrency is capped at 12.", "Concurrency is now capped at 20."),
    ("The on-call engineer is Bo Lund.", "Mia Falk is the on-call engineer now."),
    ("Invoice deadline is may 10.", "Invoice deadline: May 12, changed."),
    ("The meeting starts at 9:00.", "The meeting now starts at 9:30."),
    ("The dashboard is at https://d1.acme.io.", "The dashboard moved to https://d2.acme.io."),
    ("The lead is Lena Vogel.", "The lead is now Omar Haddad."),
    ("Write comments in German.", "Write comments in English from now on."),
    ("The sprint ends on May 17.", "The sprint now ends on May 19."),
    ("The lease ends on 2027-02-28.", "The lease now ends on 2027-08-31."),
    ("Our CRM is at https://crm.acme.io.", "Our CRM moved to https://crm2.acme.io."),
    ("Max attempts is 3.", "Raise max attempts to 7."),
    ("Ines Duarte is responsible for payroll.", "Payroll is now handled by Karl Nyman."),
    ("The sandbox region is eu-west-2.", "The sandbox region is eu-west-3 now."),
    ("We settled on Svelte for the UI.", "Let's use React instead of Svelte."),
    ("The nightly backup runs at 02:00.", "The nightly backup now runs at 04:00."),
    ("The file size limit is 10 MB.", "File size limit: 20 MB from now on."),
    ("Please reply in Dutch.", "Please reply in English again."),
    ("The catering budget is $800.", "We cut the catering budget to $650."),
    ("The seed is 42.", "Change the seed to 1337."),
    ("The mascot is called Bolt.", "The mascot has been renamed to Sparky."),
    (
        "The access code for the lab is LAB-3391.",
        "The access code for the lab changed; it is LAB-7745.",
    ),
    ("We're in phase 1 of 4.", "We're in phase 2 of 4."),
    ("The next step is the security review.", "Next step: the load test."),
    ("Examples should be in C#.", "Write the examples in TypeScript from now on."),
    ("The confidence threshold is 0.8.", "The confidence threshold went from 0.8 to 0.65."),
    ("The proxy port is 3128.", "Proxy port changed to 8118."),
    ("My nickname is Zed.", "My nickname is Max now."),
]
"""What was so, and the sentence that changes it."""

DISTINCT = [
    ("The staging port is 4000.", "The production port is 5000."),
    ("The max upload size is 25 MB.", "The max download size is 50 MB now."),
    ("The read timeout is 10 seconds.", "The write timeout is now 20 seconds."),
    (
        "Never include my name in your replies.",
        "From now on end every reply with the ticket id ABC-12.",
    ),
    ("Reply in British English.", "From now on end every reply with the ticket id ABC-12."),
    ("Reply in bullet points only.", "From now on end every reply with the ticket id ABC-12."),
    ("Never push to main.", "From now on never push to develop without a review."),
    ("Run the unit tests with pytest.", "Run the end-to-end tests with playwright now."),
    (
        "The primary database is on host db1.internal.",
        "The replica database is now on host db2.internal.",
    ),
    ("Anna Bauer owns the billing service.", "Tom Becker now owns the search service."),
    ("The launch date is 2026-05-01.", "The freeze date has moved to 2026-04-20."),
    ("Use metric units.", "From now on, use bullet points."),
    ("The ads budget is $2,000.", "The travel budget is now $900."),
    ("Log level in production is WARN.", "Set the log level in staging to DEBUG."),
    ("Answer in German.", "Write code examples in Rust from now on."),
    (
        "The frontend repo is at https://git.acme.dev/front.",
        "The backend repo moved to https://git.acme.dev/back.",
    ),
    ("My office phone is 555-0100.", "My mobile phone is now 555-0199."),
    ("Do not run migrations on Fridays.", "Do not run deployments on Mondays now."),
    ("The vault code is alpha-77.", "The door code changed to beta-12."),
    ("The web server listens on port 8080.", "The metrics server now listens on port 9090."),
    ("Session TTL is 900 seconds.", "The refresh token TTL is now 3600 seconds."),
    ("Keep responses under 200 words.", "Keep commit messages under 72 characters from now on."),
    ("Never delete logs.", "Now delete the temp files."),
    ("Use black for formatting.", "Use ruff for linting from now on."),
    ("Tests live in tests/unit.", "Integration tests moved to tests/integration."),
    ("Only Dana Scully may approve refunds.", "Only Fox Mulder may approve discounts from now on."),
    ("The demo is on Tuesday.", "The retro moved to Thursday."),
    ("Python version is 3.11.", "Node version is now 22.1."),
    (
        "The user table has 12 columns: user table columns is 12.",
        "The order table columns is now 15.",
    ),
    ("Ask before you delete files.", "From now on ask before you rename files."),
    ("The morning standup is at 09:00.", "The evening sync is now at 18:00."),
    ("Call me Ada.", "From now on call the project Osprey."),
    ("The EU region is eu-west-1.", "The US region is now us-east-2."),
    ("Don't use semicolons.", "Don't use emojis anymore."),
    ("Don't share my phone number.", "Don't share my email address from now on."),
    ("Always write tests first.", "Now write the docs."),
    ("The memory limit is 2 GB.", "The cpu limit is now 4."),
    ("The admin password is hunter-22.", "The guest password is now rabbit-33."),
    ("The test database is called clew_test.", "The dev database is now called clew_dev."),
    ("The monthly cap is $500.", "The yearly cap is now $5000."),
    ("The SMTP host is mail1.acme.net.", "The IMAP host is now mail7.acme.net."),
    ("The invoice prefix is INV-1.", "The quote prefix is now Q-2."),
    ("Lena Vogel is the product lead.", "Omar Haddad is now the tech lead."),
    ("The demo tenant password is Blue-9981.", "The trial tenant password is now Green-4410."),
    ("Cap cloud spend at $3,000.", "Cap contractor spend at $9,000 from now on."),
    ("The connect timeout is 5 seconds.", "The request timeout is now 8 seconds."),
    ("Write docs in English.", "Write commit messages in German from now on."),
    ("Never commit secrets.", "From now on never commit generated files."),
    ("Always answer in two sentences.", "From now on always cite your sources."),
    ("The source bucket is acme-raw.", "The target bucket is now acme-landing."),
    ("The morning job starts at 06:00.", "The evening job now starts at 18:00."),
    ("The minimum price is $5.", "The maximum price is now $50."),
    ("Min replicas is 2.", "Max replicas is now 10."),
    ("The import directory is /data/in.", "The export directory is now /data/out."),
    ("The old office is in Berlin.", "The new office is in Hamburg now."),
    ("The primary color is #ff0000.", "The secondary color is now #00ff00."),
    ("The login page is at /login.", "The signup page moved to /join."),
    ("Don't touch the billing module.", "Don't touch the auth module from now on."),
    ("Ask me before deleting anything.", "Ask me before installing anything from now on."),
    ("Use snake_case in Python.", "Use camelCase in TypeScript from now on."),
    ("The internal deadline is May 1.", "The public deadline is now May 20."),
    ("My sister's birthday is June 3.", "My brother's birthday is now July 9."),
    ("The soft limit is 80.", "The hard limit is now 95."),
    ("The upstream branch is origin/main.", "The feature branch is now feat/x-12."),
    ("Tests run on port 5433.", "The dashboard now runs on port 8501."),
    ("Reply in plain text.", "Reply within five minutes from now on."),
    ("Keep functions short.", "Keep your answers detailed from now on."),
    ("Product launch is on 2026-06-01.", "Beta launch moved to 2026-04-01."),
    ("Use UTC in logs: log timestamps are in UTC.", "Show meeting times in CET from now on."),
    ("The read replica is db-r1.", "The write primary is now db-w1."),
    (
        "The German office has 12 desks: the German office desks is 12.",
        "The French office desks is now 15.",
    ),
    (
        "Anything over $100 needs approval from Lena Vogel.",
        "Vacation requests need approval from Omar Haddad from now on.",
    ),
    ("The client id is abc-123.", "The client secret is now xyz-987."),
    (
        "The v1 endpoint is https://api.acme.io/v1.",
        "The v2 endpoint is now https://api.acme.io/v2.",
    ),
    ("The daily budget is $50.", "The weekly budget is now $300."),
    ("The upload bucket region is eu-west-1.", "The backup bucket region is now us-west-2."),
    ("Never email customers directly.", "From now on email a summary to ops@acme.io every Friday."),
    ("Prefer composition over inheritance.", "Prefer dataclasses over dicts now."),
    ("The first reviewer is Lena Vogel.", "The second reviewer is Omar Haddad now."),
    ("The test user is alice-1.", "The admin user is now bob-2."),
    (
        "The heartbeat interval is 5 seconds.",
        "The polling interval has been increased to 15 seconds.",
    ),
    ("Eva Roth owns the ticket tracker.", "Paul Kern now owns the release calendar."),
    ("The hotel budget is $180.", "The flight budget goes up to $420."),
    ("The vendor contact is Sara Lind.", "The customer contact is now Nils Berg."),
    ("Ship date: 2026-10-01", "Review date: 2026-10-08"),
    ("The license key is QX-7712.", "The product key is now QX-9001."),
    ("Always add tests.", "From now on always add a changelog entry."),
    ("Never use tabs.", "Never use global variables from now on."),
    ("End your replies with a question.", "From now on start your replies with a summary."),
    (
        "Don't ask me to confirm before running commands.",
        "From now on show me the diff before you commit.",
    ),
    ("Include my initials in commits.", "Never include my surname in commits from now on."),
    ("Write every number as a word.", "From now on write every date as ISO 8601."),
    (
        "When you cite something, use the primary source.",
        "When you quote something, use italics from now on.",
    ),
    ("The A team standup is at 09:15.", "The B team standup is now at 09:45."),
    ("The lunch order is due at 11:30.", "The dinner order is now due at 17:45."),
    ("Tokyo office opens at 08:00.", "Paris office now opens at 09:00."),
    ("The Android build number is 441.", "The iOS build number is now 442."),
    ("Postgres version is 15.2.", "Redis version is now 7.4."),
    ("The EU customer limit is 100.", "The US customer limit is now 200."),
    (
        "The billing webhook is https://a.io/hook1.",
        "The shipping webhook is now https://a.io/hook2.",
    ),
    ("The blue cluster runs in eu-west-1.", "The green cluster now runs in eu-west-3."),
    ("The theme is dark.", "The font is now Inter."),
    ("Queue one is called jobs-a.", "Queue two is now called jobs-b."),
    ("Refunds under $20 need no approval.", "Refunds over $500 now need approval from Eva Roth."),
    ("Speak German with me.", "From now on write code comments in English."),
    ("Our SLA is 99.9 percent.", "Our SLO is now 99.95 percent."),
    ("The retry delay is 2 seconds.", "The retry count is now 4."),
    ("The parent company is called Acme Holding.", "The subsidiary is now called Acme Labs."),
    ("The alpha release is on May 2.", "The stable release moved to June 9."),
    ("Only senior staff may see salaries.", "Only Eva Roth may see contracts now."),
    ("The grace period is 14 days.", "The trial period is now 21 days."),
    ("Rina Patel leads the migration.", "The redesign is now led by Jo Brandt."),
    ("Cluster name: orion-3", "The namespace name is orion-4 now."),
    ("The deposit is $900.", "The rent went up to $1,050."),
    ("Kick-off is on 2026-08-03.", "The wrap-up has been pushed to 2026-09-10."),
    ("Staging runs on port 8801.", "Preview now runs on port 8802."),
    ("The coupon code is SAVE-10.", "The referral code is SAVE-25 now."),
    ("The workshop costs 300 euros.", "The hotel now costs 350 euros."),
    ("The deploy key is dk-4471.", "The signing key rotated; it is dk-9920 now."),
    ("Max line length is 88.", "Change max file length to 500."),
    ("The package is called tinyq.", "We renamed the module to microq."),
    ("Don't use emojis.", "Don't use abbreviations from now on."),
    ("Never reveal the customer list.", "Never reveal the price list from now on."),
    ("Begin every answer with the date.", "From now on finish every answer with a summary."),
    ("Always ask before you spend money.", "From now on always ask before you send mail."),
    ("Keep file names in lower case.", "Keep class names in CamelCase from now on."),
    ("Rina Patel reviews frontend changes.", "Jo Brandt now reviews backend changes."),
    ("The iOS app is at version 4.2.", "The Android app is now at version 4.9."),
    ("Image quality is 80.", "Video quality should be 92 now."),
    ("The first prize is $500.", "The second prize is now $250."),
    ("The house key code is 4471-A.", "The garage key code is now 9920-B."),
    ("Our fiscal year starts on July 1.", "The school year now starts on September 1."),
    ("Use pytest for unit tests.", "Use k6 for load tests from now on."),
    (
        "The api container has 512 MB: api container memory is 512 MB.",
        "Worker container memory is now 1 GB.",
    ),
    ("Reply in one paragraph.", "From now on sign every reply with AB."),
    ("No meetings on Friday.", "No deploys on Monday from now on."),
    ("Monday's topic is budgets: the Monday topic is budgets.", "The Friday topic is now hiring."),
    ("My mother's name is Ruth.", "My dog is now called Rex."),
    ("The Berlin server is 10.0.0.5.", "The Munich server is now 10.0.0.9."),
    ("Show prices in EUR.", "Show weights in metric units from now on."),
    ("The budget is $500.", "The fee is $20."),
    ("The budget is $500.", "The price is now $20."),
    ("The lead is Lena Vogel.", "The contact is now Omar Haddad."),
    ("The dashboard is at https://a.io.", "The wiki is now at https://b.io."),
    ("Write docs in English.", "Write comments in German now."),
    ("The meeting starts at 9:00.", "The meeting now ends at 10:00."),
    ("The sprint starts on May 3.", "The sprint now ends on May 17."),
    ("The project starts on May 3.", "The project is due on May 17 now."),
    ("Use metric units.", "Show temperatures in celsius."),
    ("We are in phase 2 of 5.", "This is part 1 of 2 now."),
    ("The port of server 1 is 8001.", "The port of server 2 is now 8002."),
    ("The door code is A-11.", "The door pin is B-22 now."),
    ("The maintainer is Lena Vogel.", "The reviewer is now Omar Haddad."),
    ("Reply in English.", "Write docs in German from now on."),
    ("The release is on May 3.", "The demo is now on May 7."),
    ("The API is at https://api.a.io.", "The docs are now at https://docs.a.io."),
    ("Meeting times are in UTC.", "Log timestamps are in CET now."),
    ("The branch feat/a-1 is for login.", "The branch feat/b-2 is for search."),
    ("The lease ends on 2027-02-28.", "The warranty now ends on 2027-08-31."),
    ("Our CRM is at https://crm.acme.io.", "Our ERP moved to https://erp.acme.io."),
    ("Ines Duarte is responsible for payroll.", "Karl Nyman is now responsible for hiring."),
    ("The nightly backup runs at 02:00.", "The nightly report now runs at 04:00."),
    ("The catering budget is $800.", "The venue budget is cut to $2,650."),
    (
        "The access code for the lab is LAB-3391.",
        "The access code for the gym changed; it is GYM-7745.",
    ),
    ("Max attempts is 3.", "Max workers is now 7."),
    ("Don't open links in mails.", "Don't open attachments in mails from now on."),
    ("Always greet me by name.", "From now on always end with a question."),
    ("The proxy port is 3128.", "The debugger port changed to 5678."),
    ("My nickname is Zed.", "My cat's nickname is Max now."),
    ("The laptop model is X-200.", "The printer model is now P-900."),
    ("The mascot is called Bolt.", "The newsletter is now called Pulse."),
    ("Use two spaces in YAML.", "Use four spaces in Python from now on."),
    ("Ask Ines before touching payroll.", "Ask Karl before touching hiring from now on."),
    ("The confidence threshold is 0.8.", "The similarity threshold is now 0.65."),
    ("The Monday meeting starts at 10:00.", "The Thursday meeting now starts at 11:00."),
    ("Never quote prices to customers.", "From now on never quote delivery dates to customers."),
    ("Staging uses Postgres 15.", "Production now uses Postgres 16."),
]
"""Two things that are alike: both hold."""


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_change_replaces_what_was(old: str, new: str) -> None:
    found = {row.seq for row in rows(said(old, new))}
    assert 1 not in found
    assert 3 in found


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_what_is_only_alike_stays(one: str, other: str) -> None:
    assert {1, 3} <= {row.seq for row in rows(said(one, other))}


def test_a_rule_about_replies_leaves_the_other_rules_about_replies() -> None:
    """A known trap of ledgers that compare words."""
    before = [
        "Never include my name in your replies or in any tool call.",
        "Reply in British English.",
        "Reply in bullet points only, no paragraphs.",
        'End every reply with this exact sentence: "Let me know if you need anything else."',
    ]
    found = rows(said(*before, "From now on end every reply with the ticket id SESS-118."), "rule")
    assert len({row.seq for row in found}) == 5


def test_the_same_said_twice_is_one_row_the_newer() -> None:
    found = rows(said("Never push to main.", "Never push to main."))
    assert [row.seq for row in found] == [3]


def test_a_value_that_goes_back_is_there_again() -> None:
    first, back = "The session TTL is 900 seconds.", "The session TTL is 3600 seconds now."
    found = rows(said(first, back, first))
    assert [(row.seq, row.value) for row in found] == [(5, "900 seconds")]


def test_what_is_named_as_replaced_goes_though_the_words_differ() -> None:
    talk = [
        agent(1, "Decision: we will use itsdangerous for token signing, it is vendored."),
        user(2, "Switch to pyjwt instead of itsdangerous; the review rejected the other one."),
    ]
    (row,) = rows(talk, "decision")
    assert (row.seq, row.value, row.was) == (2, "pyjwt", (1,))


def test_a_name_that_is_only_mentioned_replaces_nothing() -> None:
    found = rows(said("Never expose redis to the internet.", "Use valkey instead of redis."))
    assert {1, 3} <= {row.seq for row in found}


def test_an_older_message_never_replaces_a_newer_one() -> None:
    talk = said("The pool size is now 16.", "Fine weather today.")
    assert [row.value for row in rows(talk, "fact")] == ["16"]


def test_a_statement_without_a_subject_replaces_nothing() -> None:
    found = rows(said("It is 42 now.", "It is 43 now."))
    assert {row.seq for row in found} == {1, 3}


def test_two_values_of_one_sentence_fall_one_by_one() -> None:
    talk = said(
        "The project codename is HERON-12 and the deadline is 2027-01-05.",
        "The deadline is now 2027-02-09.",
    )
    texts = [row.text for row in rows(talk)]
    assert any("HERON-12" in text for text in texts)
    assert not any("2027-01-05" in text for text in texts)


def test_an_earlier_epoch_is_told_what_no_longer_holds_of_it() -> None:
    old = epoch(said("The session TTL is 900 seconds.", "Never push to main."))
    new = epoch(said("The session TTL should now be 3600 seconds.", first=5), old, number=2)
    assert [(one.seq, one.label) for one in new.gone] == [(1, "session ttl")]
    assert "No longer holds: session ttl [@1]." in new.text
    assert "(replaces [@1])" in new.text
    assert "900" not in new.text
    assert "900" in old.text


def test_what_an_earlier_epoch_says_is_not_said_again() -> None:
    old = epoch(said("Never push to main."))
    new = epoch(said("Never push to main.", first=3), old, number=2)
    assert not new.rows


def test_a_fold_has_neither_what_was_replaced_nor_a_word_about_it() -> None:
    old = epoch(said("The session TTL is 900 seconds.", "Never push to main."))
    new = epoch(said("The session TTL should now be 3600 seconds.", first=5), old, number=2)
    both = fold([old, new], number=3, room=20_000, count=len)
    assert "900" not in both.text
    assert "3600" in both.text
    assert "Never push to main." in both.text
    assert (both.first, both.last) == (1, 6)


def test_values_without_a_slot_are_kept_newest_first() -> None:
    text = epoch(said("Looks like #b5bd68 to me.", "Looks like #8abeb7 to me.")).text
    assert "newest first" in text
    assert text.index("#8abeb7") < text.index("#b5bd68")


UNSURE = [
    "If the session TTL is 60 seconds, people get angry.",
    "What if the session TTL is 60 seconds?",
    "Should we use pyjwt instead of itsdangerous?",
    "Maybe the session TTL should be 60 seconds now.",
    "We could set the session TTL to 60 seconds.",
    "I suggest the session TTL is changed to 60 seconds.",
    "Never set the session TTL to 60 seconds.",
    "The session TTL is not 60 seconds.",
    "We could use pyjwt instead of itsdangerous.",
    "I am thinking about moving the session TTL to 60 seconds.",
]


@pytest.mark.parametrize("text", UNSURE)
def test_what_is_only_supposed_or_denied_replaces_nothing(text: str) -> None:
    held = "The session TTL is 900 seconds. We use itsdangerous for tokens."
    assert [row.value for row in rows(said(held, text)) if row.seq == 1] == [
        "900 seconds", "itsdangerous",
    ]  # fmt: skip


def test_a_port_that_is_forbidden_is_not_the_port() -> None:
    found = rows(said("The port is 9090.", "Never use port 8080."))
    assert {row.seq for row in found} == {1, 3}


def test_a_polite_question_is_an_order() -> None:
    talk = said("We use itsdangerous for tokens.", "Can you use pyjwt instead of itsdangerous?")
    assert {row.seq for row in rows(talk)} == {3}


def test_an_agent_cannot_replace_a_persons_rule() -> None:
    talk = [
        user(1, "The session TTL must be 900 seconds."),
        agent(2, "I have now set the session TTL to 60 seconds, which is `faster`."),
    ]
    assert 1 in {row.seq for row in rows(talk, "rule")}
