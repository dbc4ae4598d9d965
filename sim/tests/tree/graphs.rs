//! Graphs over chips: their results, and errors of their devices.

use laneway_linux::{Error, TaskArgs, WorkerId};
use laneway_sim::{Profile, scale_factor};

use crate::support::{Bench, HBG};

/// C-3 and the table of profiles: each depth and number of frames, the same results.
pub(crate) fn every_profile_computes_through_the_whole_stack() {
    for profile in Profile::ALL {
        let bench = Bench::new(&[profile], 1);
        let (a, b) = (bench.vector(1000, |i| i as f32), bench.vector(1000, |i| 2.0 * i as f32));
        let c = bench.vector(1000, |_| 0.0);
        for _ in 0..3 {
            bench
                .worker
                .run(|orch| {
                    let chip = bench.chips[0];
                    orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&b).output(&c))?;
                    let double = scale_factor(2.0);
                    orch.submit_next_level(&bench.scale, chip, TaskArgs::new().input(&c).output(&b).scalar(double))?;
                    Ok(())
                })
                .unwrap();
        }
        // b is 2i, then 2(i + b) three times over: 6i, 14i, 30i.
        assert_eq!(b.to_vec().unwrap()[..3], [0.0, 30.0, 60.0], "{profile:?}");
        bench.worker.close().unwrap();
    }
}

pub(crate) fn two_chips_and_a_sub_child_share_one_graph() {
    let bench = Bench::new(&[HBG, Profile::A2a3TensormapAndRingbuffer], 1);
    let (a, b) = (bench.vector(512, |i| i as f32), bench.vector(512, |_| 1.0));
    let c = bench.vector(512, |_| 0.0);
    for round in 1..=20 {
        bench
            .worker
            .run(|orch| {
                let mut sum = TaskArgs::new();
                orch.submit_next_level(&bench.add, bench.chips[0], sum.input(&a).input(&b).output(&c))?;
                let scale = scale_factor(f64::from(round));
                orch.submit_next_level(
                    &bench.scale,
                    bench.chips[1],
                    TaskArgs::new().input(&c).output(&b).scalar(scale),
                )?;
                orch.submit_sub(&bench.nothing, TaskArgs::new().input(&b))?;
                Ok(())
            })
            .unwrap();
        b.fill_with(|_| 1.0).unwrap();
        assert_eq!(c.to_vec().unwrap()[511], 512.0);
    }
    bench.worker.close().unwrap();
}

/// E-14, E-33: up to two runs are open at once; each has its own results.
pub(crate) fn runs_overlap_on_two_frames_and_keep_their_results_apart() {
    let bench = Bench::new(&[HBG, HBG], 1);
    let outs: Vec<_> = (0..40).map(|_| bench.vector(64, |_| 0.0)).collect();
    let (a, b) = (bench.vector(64, |i| i as f32), bench.vector(64, |_| 0.5));
    let runs: Vec<_> = outs
        .iter()
        .enumerate()
        .map(|(i, out)| {
            let chip = bench.chips[i % 2];
            bench
                .worker
                .submit(|orch| {
                    orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&b).output(out))?;
                    let scale = scale_factor(i as f64);
                    orch.submit_next_level(&bench.scale, chip, TaskArgs::new().input(&a).output(&b).scalar(scale))?;
                    Ok(())
                })
                .unwrap()
        })
        .collect();
    for run in &runs {
        run.wait().unwrap();
    }
    // Runs execute one after the other: b holds (i - 1) · a when run i adds it.
    for (i, out) in outs.iter().enumerate().skip(1) {
        assert_eq!(out.to_vec().unwrap()[7], 7.0 + 7.0 * (i - 1) as f32, "run {i}");
    }
    bench.worker.close().unwrap();
}

pub(crate) fn an_error_of_the_device_arrives_with_its_text() {
    let bench = Bench::new(&[HBG], 1);
    let (a, b) = (bench.vector(8, |_| 1.0), bench.vector(9, |_| 1.0));
    let c = bench.vector(8, |_| 0.0);
    let wrong = bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&b).output(&c))?)
        })
        .unwrap_err();
    let text = wrong.to_string();
    assert!(text.contains("worker 0: code") && text.contains("shape"), "{text}");
    bench
        .worker
        .run(|orch| {
            let args = &mut TaskArgs::new();
            Ok(orch.submit_next_level(&bench.add, bench.chips[0], args.input(&a).input(&a).output(&c))?)
        })
        .unwrap();
    assert_eq!(c.to_vec().unwrap(), [2.0; 8]);
}

/// E-39, R-12
pub(crate) fn an_unknown_chip_and_a_callable_of_the_wrong_kind_are_refused() {
    let bench = Bench::new(&[HBG], 1);
    let stranger = WorkerId::new(9).unwrap();
    let unknown = bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.add, stranger, TaskArgs::new())?));
    assert!(unknown.unwrap_err().to_string().contains('9'));
    let sub = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new())?));
    assert!(matches!(sub, Err(Error::CallableNamespace { .. })));
    let chip = bench.worker.run(|orch| Ok(orch.submit_next_level(&bench.nothing, bench.chips[0], TaskArgs::new())?));
    assert!(matches!(chip, Err(Error::CallableNamespace { .. })));
    bench.worker.close().unwrap();
}
