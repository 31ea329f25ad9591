// A stack with a queue, a function that ships orders, and leasehold's locks around each message.
//
// `-c artifacts=FOLDER` names what `cargo lambda build` made: FOLDER/extensions/leasehold.zip and
// FOLDER/leasehold-sample/bootstrap.zip. Without it that is target/lambda of this repository.

import * as fs from 'node:fs';
import * as path from 'node:path';

import { App, Duration, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as sqs from 'aws-cdk-lib/aws-sqs';

import { Leasehold } from '../lib/leasehold';

const app = new App();
const artifacts: string = app.node.tryGetContext('artifacts') ?? path.join(__dirname, '../../../../target/lambda');

function artifact(file: string): lambda.AssetCode {
  const whole = path.resolve(artifacts, file);
  if (!fs.existsSync(whole)) {
    // The CDK's own error for this prints a page of its code first.
    console.error(`there is no ${whole}: build it first, by the two \`cargo lambda build\` lines of README.md`);
    process.exit(1);
  }
  return lambda.Code.fromAsset(whole);
}

const stack = new Stack(app, 'LeaseholdExample');

const timeout = Duration.seconds(30);
const ship = new lambda.Function(stack, 'Ship', {
  runtime: lambda.Runtime.PROVIDED_AL2023,
  architecture: lambda.Architecture.ARM_64,
  handler: 'bootstrap',
  code: artifact('leasehold-sample/bootstrap.zip'),
  memorySize: 256,
  timeout,
  environment: { SAMPLE_KEY: 'orders:{body.orderId}', SAMPLE_PER_RECORD: '1' },
});
const orders = new sqs.Queue(stack, 'Orders', {
  // Six times the function's: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
  visibilityTimeout: Duration.seconds(6 * timeout.toSeconds()),
  deadLetterQueue: {
    maxReceiveCount: 5,
    queue: new sqs.Queue(stack, 'OrdersNotDone', { retentionPeriod: Duration.days(14) }),
  },
});
ship.addEventSource(new SqsEventSource(orders, { maxConcurrency: 10 }));

const locks = new Leasehold(stack, 'Leasehold', {
  extension: { arm64: artifact('extensions/leasehold.zip') },
});
locks.lock(ship, { perRecord: true });

app.synth();
